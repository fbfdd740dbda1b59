"""`EMAModel`: a copy of parameters that follows them without grad; it clears and steps nothing."""

import torch


class EMAModel:
    def __init__(self, parameters, *args, **kwargs):
        self.shadow_params = [one.clone().detach() for one in parameters]

    @classmethod
    def from_pretrained(cls, *args, **kwargs):
        return cls([])

    @torch.no_grad()
    def step(self, parameters):
        for mean, parameter in zip(self.shadow_params, parameters):
            mean.sub_(0.1 * (mean - parameter))

    def copy_to(self, parameters):
        pass

    def store(self, parameters):
        pass

    def restore(self, parameters):
        pass

    def to(self, device=None, dtype=None, non_blocking=False):
        pass

    def state_dict(self):
        return {}

    def load_state_dict(self, state_dict):
        pass

    def save_pretrained(self, path):
        pass


def set_seed(seed):
    pass


def compute_snr(noise_scheduler, timesteps):
    return noise_scheduler.alphas_cumprod[timesteps]
