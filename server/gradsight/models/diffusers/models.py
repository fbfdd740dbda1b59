"""Denoisers and autoencoders: modules whose output depends on their parameters and on what they get."""

import argparse

import torch
from torch import nn
from transformers.utils import ModelOutput


class ModelMixin(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self.config = argparse.Namespace()
        self.dtype = torch.float32
        self.conv_in = nn.Conv2d(3, 64, 3, padding=1)
        self.conv_out = nn.Conv2d(64, 3, 3, padding=1)

    @classmethod
    def from_pretrained(cls, *args, **kwargs):
        return cls()

    @classmethod
    def from_config(cls, *args, **kwargs):
        return cls()

    @classmethod
    def load_config(cls, *args, **kwargs):
        return argparse.Namespace()

    def save_pretrained(self, *args, **kwargs):
        pass

    def register_to_config(self, **kwargs):
        pass

    def enable_gradient_checkpointing(self):
        pass

    def enable_xformers_memory_efficient_attention(self, attention_op=None):
        pass

    def add_adapter(self, adapter_config, adapter_name="default"):
        pass

    def _body(self, x):
        return self.conv_out(self.conv_in(x))


class _Denoiser(ModelMixin):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.attention = nn.Linear(64, 3)

    def forward(
        self,
        sample=None,
        timestep=None,
        encoder_hidden_states=None,
        *args,
        down_block_additional_residuals=None,
        mid_block_additional_residual=None,
        return_dict=True,
        **kwargs,
    ):
        noise = self._body(sample if sample is not None else kwargs["hidden_states"])
        if encoder_hidden_states is not None:
            noise = noise + self.attention(encoder_hidden_states).mean()
        if mid_block_additional_residual is not None:
            noise = noise + mid_block_additional_residual.mean()
            for residual in down_block_additional_residuals:
                noise = noise + residual.mean()
        return ModelOutput(sample=noise) if return_dict else (noise,)


class UNet2DModel(ModelMixin):
    """A denoiser that is told nothing but the time step."""

    def forward(self, sample, timestep, class_labels=None, return_dict=True):
        noise = self._body(sample)
        return ModelOutput(sample=noise) if return_dict else (noise,)


class UNet1DModel(UNet2DModel):
    pass


class ControlNetModel(ModelMixin):
    @classmethod
    def from_unet(cls, unet, *args, **kwargs):
        return cls()

    def forward(
        self,
        sample=None,
        timestep=None,
        encoder_hidden_states=None,
        controlnet_cond=None,
        *args,
        return_dict=True,
        **kwargs,
    ):
        hint = self.conv_in(controlnet_cond).mean()
        middle = self._body(sample) + hint
        below = [middle * 1, middle * 2]
        if not return_dict:
            return below, middle
        return ModelOutput(down_block_res_samples=below, mid_block_res_sample=middle)


class _Latents:
    def __init__(self, mean):
        self.mean = mean

    def sample(self, generator=None):
        return self.mean + torch.randn(self.mean.shape)

    def mode(self):
        return self.mean

    def kl(self, other=None):
        return self.mean.pow(2).sum()


class _Autoencoder(ModelMixin):
    def encode(self, x, return_dict=True):
        latents = _Latents(self.conv_in(x))
        return ModelOutput(latent_dist=latents) if return_dict else (latents,)

    def decode(self, z, return_dict=True, generator=None):
        image = self.conv_out(z)
        return ModelOutput(sample=image) if return_dict else (image,)

    def forward(self, sample, sample_posterior=False, return_dict=True, generator=None):
        return self.decode(self.encode(sample)["latent_dist"].mode(), return_dict)


UNet2DConditionModel = UNet3DConditionModel = UNetMotionModel = _Denoiser
Transformer2DModel = DiTTransformer2DModel = SD3Transformer2DModel = FluxTransformer2DModel = _Denoiser
PixArtTransformer2DModel = PriorTransformer = T2IAdapter = _Denoiser
AutoencoderKL = AutoencoderTiny = VQModel = AsymmetricAutoencoderKL = _Autoencoder
