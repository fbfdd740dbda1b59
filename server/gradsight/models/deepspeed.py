"""DeepSpeed: the engine is called as the module, calls backward, and clears the gradients with its step."""

import torch
from torch import nn


class DeepSpeedEngine(nn.Module):
    def __init__(
        self,
        args,
        model,
        optimizer=None,
        model_parameters=None,
        training_data=None,
        lr_scheduler=None,
        **kwargs,
    ):
        super().__init__()
        self.module = model
        self.optimizer = optimizer
        self.lr_scheduler = lr_scheduler
        self.local_rank = 0
        self.global_rank = 0
        self.global_steps = 0
        self.micro_steps = 0
        self._rounds = kwargs.get("_rounds", 1)

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def backward(self, loss, retain_graph=False, scale_wrt_gas=True, **kwargs):
        if self._rounds != 1:
            loss = loss / self._rounds
        loss.backward(retain_graph=retain_graph)
        return loss

    def step(self, lr_kwargs=None):
        if self.is_gradient_accumulation_boundary():
            self.optimizer.step()
            # The gradients of the module are cleared, not through the optimizer.
            self.module.zero_grad()
            if self.lr_scheduler is not None:
                self.lr_scheduler.step()
            self.global_steps += 1
        self.micro_steps += 1

    def is_gradient_accumulation_boundary(self):
        return self._rounds == 1 or (self.micro_steps + 1) % self._rounds == 0

    def zero_grad(self):
        self.optimizer.zero_grad()

    def save_checkpoint(self, save_dir, tag=None, client_state=None, **kwargs):
        return True

    def load_checkpoint(self, load_dir, tag=None, **kwargs):
        return None, {}


def initialize(
    args=None,
    model=None,
    optimizer=None,
    model_parameters=None,
    training_data=None,
    lr_scheduler=None,
    config=None,
    **kwargs,
):
    if optimizer is None:
        held = model_parameters if model_parameters is not None else model.parameters()
        optimizer = torch.optim.Adam(held, lr=1e-3)
    loader = torch.utils.data.DataLoader(training_data) if training_data is not None else None
    rounds = config.get("gradient_accumulation_steps", 1) if isinstance(config, dict) else 1
    engine = DeepSpeedEngine(args, model, optimizer, lr_scheduler=lr_scheduler, _rounds=rounds)
    return engine, optimizer, loader, lr_scheduler


def init_distributed(*args, **kwargs):
    pass


def add_config_arguments(parser):
    return parser
