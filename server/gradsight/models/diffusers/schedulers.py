"""Noise schedulers: tables of numbers without a graph, and sums of what they are given."""

import argparse

import torch
from transformers.utils import ModelOutput


class _Scheduler:
    def __init__(self, *args, num_train_timesteps=1000, **kwargs):
        self.config = argparse.Namespace()
        self.config.num_train_timesteps = num_train_timesteps
        self.betas = torch.linspace(0.0001, 0.02, 1000)
        self.alphas = 1.0 - self.betas
        self.alphas_cumprod = torch.cumprod(self.alphas, 0)
        self.sigmas = torch.linspace(0.0, 1.0, 1000)
        self.timesteps = torch.arange(1000)

    @classmethod
    def from_pretrained(cls, *args, **kwargs):
        return cls()

    @classmethod
    def from_config(cls, *args, **kwargs):
        return cls()

    def set_timesteps(self, *args, **kwargs):
        pass

    def save_pretrained(self, *args, **kwargs):
        pass

    def add_noise(self, original_samples, noise, timesteps):
        return 0.9 * original_samples + 0.1 * noise

    def get_velocity(self, sample, noise, timesteps):
        return 0.9 * noise - 0.1 * sample

    def scale_model_input(self, sample, timestep=None):
        return sample

    def step(self, model_output, timestep, sample, *args, return_dict=True, **kwargs):
        earlier = 0.9 * sample + 0.1 * model_output
        origin = sample - 0.1 * model_output
        if return_dict:
            return ModelOutput(prev_sample=earlier, pred_original_sample=origin)
        return (earlier,)


SchedulerMixin = _Scheduler
DDPMScheduler = DDIMScheduler = PNDMScheduler = EulerDiscreteScheduler = _Scheduler
EulerAncestralDiscreteScheduler = DPMSolverMultistepScheduler = UniPCMultistepScheduler = _Scheduler
FlowMatchEulerDiscreteScheduler = LMSDiscreteScheduler = HeunDiscreteScheduler = _Scheduler
