"""ema_pytorch: a copy of a model whose weights follow it without grad; it clears and steps nothing."""

import copy

import torch
from torch import nn


class EMA(nn.Module):
    def __init__(
        self,
        model,
        ema_model=None,
        beta=0.9999,
        update_after_step=100,
        update_every=10,
        include_online_model=True,
        **kwargs,
    ):
        super().__init__()
        # Unless it is asked not to, the average holds the model itself, too.
        self.online_model = model if include_online_model else [model]
        self.ema_model = ema_model if ema_model is not None else copy.deepcopy(model)
        for parameter in self.ema_model.parameters():
            parameter.requires_grad_(False)

    @property
    def model(self):
        return self.online_model[0] if isinstance(self.online_model, list) else self.online_model

    @torch.no_grad()
    def copy_params_from_model_to_ema(self):
        for mean, parameter in zip(self.ema_model.parameters(), self.model.parameters()):
            mean.copy_(parameter)

    @torch.no_grad()
    def update(self):
        for mean, parameter in zip(self.ema_model.parameters(), self.model.parameters()):
            mean.lerp_(parameter, 0.1)

    def forward(self, *args, **kwargs):
        return self.ema_model(*args, **kwargs)
