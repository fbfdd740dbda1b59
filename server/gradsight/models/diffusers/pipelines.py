"""Pipelines: they hold the networks that they are given, and run them without grad."""

import argparse

import torch


class DiffusionPipeline:
    def __init__(self, **components):
        for name, component in components.items():
            setattr(self, name, component)
        self.components = components

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, **kwargs):
        return cls(**kwargs)

    @torch.no_grad()
    def __call__(self, *args, **kwargs):
        return argparse.Namespace()

    def to(self, *args, **kwargs):
        return self

    def save_pretrained(self, save_directory, **kwargs):
        pass

    def push_to_hub(self, repo_id, **kwargs):
        pass

    def set_progress_bar_config(self, **kwargs):
        pass

    def enable_xformers_memory_efficient_attention(self, attention_op=None):
        pass

    def enable_attention_slicing(self, slice_size="auto"):
        pass

    def enable_model_cpu_offload(self, gpu_id=None, device=None):
        pass


DDPMPipeline = DDIMPipeline = LDMPipeline = PNDMPipeline = DiffusionPipeline
StableDiffusionPipeline = StableDiffusionImg2ImgPipeline = StableDiffusionInpaintPipeline = DiffusionPipeline
StableDiffusionControlNetPipeline = StableDiffusionInstructPix2PixPipeline = DiffusionPipeline
StableDiffusionXLPipeline = StableDiffusionXLImg2ImgPipeline = StableDiffusionXLInpaintPipeline = (
    DiffusionPipeline
)
StableDiffusionXLControlNetPipeline = StableDiffusion3Pipeline = FluxPipeline = DiffusionPipeline
KandinskyV22Pipeline = PixArtAlphaPipeline = WuerstchenCombinedPipeline = CogVideoXPipeline = (
    DiffusionPipeline
)


class AutoPipelineForText2Image:
    @classmethod
    def from_pretrained(cls, pretrained_model_or_path, **kwargs):
        return DiffusionPipeline(**kwargs)


AutoPipelineForImage2Image = AutoPipelineForInpainting = AutoPipelineForText2Image
