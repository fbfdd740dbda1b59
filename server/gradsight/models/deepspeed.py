"""DeepSpeed: the engine is called as the module, calls backward, and clears the gradients with its step."""

import torch
from torch import nn


class DeepSpeedEngine(nn.Module):
    def __init__(self, model, optimizer, lr_scheduler):
        super().__init__()
        self.module = model
        self.optimizer = optimizer
        self.lr_scheduler = lr_scheduler
        self.local_rank = 0
        self.global_rank = 0
        self.global_steps = 0

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def backward(self, loss, retain_graph=False, scale_wrt_gas=True):
        loss.backward(retain_graph=retain_graph)
        return loss

    def step(self, lr_kwargs=None):
        if self.is_gradient_accumulation_boundary():
            self.optimizer.step()
            self.optimizer.zero_grad()
            if self.lr_scheduler is not None:
                self.lr_scheduler.step()
            self.global_steps += 1

    def is_gradient_accumulation_boundary(self):
        return True

    def zero_grad(self, set_to_none=True):
        self.optimizer.zero_grad()

    def save_checkpoint(self, save_dir, tag=None, client_state=None, **options):
        return True

    def load_checkpoint(self, load_dir, tag=None, **options):
        return None, {}


def initialize(
    args=None,
    model=None,
    optimizer=None,
    model_parameters=None,
    training_data=None,
    lr_scheduler=None,
    config=None,
    **options,
):
    if optimizer is None:
        held = model_parameters if model_parameters is not None else model.parameters()
        optimizer = torch.optim.Adam(held, lr=1e-3)
    loader = torch.utils.data.DataLoader(training_data) if training_data is not None else None
    return DeepSpeedEngine(model, optimizer, lr_scheduler), optimizer, loader, lr_scheduler


def init_distributed(*args, **kwargs):
    pass


def add_config_arguments(parser):
    return parser
