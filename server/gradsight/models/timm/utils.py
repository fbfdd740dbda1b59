"""An average of a model, and a scaler that calls backward, clips and steps."""

import copy

import torch
from torch import nn


class ModelEmaV2(nn.Module):
    def __init__(self, model, decay=0.9999, device=None):
        super().__init__()
        self.module = copy.deepcopy(model)
        self.module.eval()
        self.decay = decay
        self.device = device

    def update(self, model):
        with torch.no_grad():
            for mean, value in zip(self.module.state_dict().values(), model.state_dict().values()):
                mean.copy_(self.decay * mean + (1.0 - self.decay) * value)

    def set(self, model):
        with torch.no_grad():
            for mean, value in zip(self.module.state_dict().values(), model.state_dict().values()):
                mean.copy_(value)

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)


def dispatch_clip_grad(parameters, value, mode="norm", norm_type=2.0):
    if mode == "value":
        nn.utils.clip_grad_value_(parameters, value)
    else:
        nn.utils.clip_grad_norm_(parameters, value)


class NativeScaler:
    def __init__(self, device="cuda"):
        self._scaler = torch.amp.GradScaler(device=device)

    def __call__(
        self,
        loss,
        optimizer,
        clip_grad=None,
        clip_mode="norm",
        parameters=None,
        create_graph=False,
        need_update=True,
    ):
        self._scaler.scale(loss).backward(create_graph=create_graph)
        if need_update:
            if clip_grad is not None:
                self._scaler.unscale_(optimizer)
                dispatch_clip_grad(parameters, clip_grad, mode=clip_mode)
            self._scaler.step(optimizer)
            self._scaler.update()

    def state_dict(self):
        return {}

    def load_state_dict(self, state_dict):
        pass
