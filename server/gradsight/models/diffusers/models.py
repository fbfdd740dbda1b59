"""Denoisers and autoencoders: modules whose output depends on their parameters and on what they get."""

import argparse

import torch
from torch import nn
from transformers.utils import ModelOutput


class ModelMixin(nn.Module):
    def __init__(self, *args, **options):
        super().__init__()
        self.config = argparse.Namespace()
        self.dtype = torch.float32
        self.conv_in = nn.Conv2d(3, 64, 3, padding=1)
        self.conv_out = nn.Conv2d(64, 3, 3, padding=1)

    @classmethod
    def from_pretrained(cls, *args, **options):
        return cls()

    @classmethod
    def from_config(cls, *args, **options):
        return cls()

    @classmethod
    def load_config(cls, *args, **options):
        return argparse.Namespace()

    def save_pretrained(self, *args, **options):
        pass

    def register_to_config(self, **options):
        pass

    def enable_gradient_checkpointing(self):
        pass

    def enable_xformers_memory_efficient_attention(self, attention_op=None):
        pass

    def add_adapter(self, adapter_config, adapter_name="default"):
        pass

    def body(self, x):
        return self.conv_out(self.conv_in(x))


class Denoiser(ModelMixin):
    def forward(
        self, sample=None, timestep=None, encoder_hidden_states=None, *args, return_dict=True, **options
    ):
        noise = self.body(sample if sample is not None else options["hidden_states"])
        return ModelOutput(sample=noise) if return_dict else (noise,)


class Latents:
    def __init__(self, mean):
        self.mean = mean

    def sample(self, generator=None):
        return self.mean + torch.randn(self.mean.shape)

    def mode(self):
        return self.mean

    def kl(self, other=None):
        return self.mean.pow(2).sum()


class Autoencoder(ModelMixin):
    def encode(self, x, return_dict=True):
        latents = Latents(self.conv_in(x))
        return ModelOutput(latent_dist=latents) if return_dict else (latents,)

    def decode(self, z, return_dict=True, generator=None):
        image = self.conv_out(z)
        return ModelOutput(sample=image) if return_dict else (image,)

    def forward(self, sample, sample_posterior=False, return_dict=True, generator=None):
        return self.decode(self.encode(sample)["latent_dist"].mode(), return_dict)


UNet2DModel = UNet2DConditionModel = UNet3DConditionModel = UNet1DModel = UNetMotionModel = Denoiser
Transformer2DModel = DiTTransformer2DModel = SD3Transformer2DModel = FluxTransformer2DModel = Denoiser
PixArtTransformer2DModel = PriorTransformer = ControlNetModel = T2IAdapter = Denoiser
AutoencoderKL = AutoencoderTiny = VQModel = AsymmetricAutoencoderKL = Autoencoder
