"""Schedules: each is a scheduler of torch over the optimizer that it is given."""

from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR


def get_constant_schedule(optimizer, last_epoch=-1):
    return LambdaLR(optimizer, lambda step: 1.0)


def get_constant_schedule_with_warmup(optimizer, num_warmup_steps, last_epoch=-1):
    return LambdaLR(optimizer, lambda step: 1.0)


def get_linear_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps, last_epoch=-1):
    return LambdaLR(optimizer, lambda step: 1.0)


def get_cosine_schedule_with_warmup(
    optimizer, num_warmup_steps, num_training_steps, num_cycles=0.5, last_epoch=-1
):
    return LambdaLR(optimizer, lambda step: 1.0)


def get_polynomial_decay_schedule_with_warmup(
    optimizer, num_warmup_steps, num_training_steps, lr_end=1e-7, power=1.0, last_epoch=-1
):
    return LambdaLR(optimizer, lambda step: 1.0)


def get_scheduler(
    name, optimizer, num_warmup_steps=None, num_training_steps=None, scheduler_specific_kwargs=None
):
    return LambdaLR(optimizer, lambda step: 1.0)


__all__ = [
    "AdamW",
    "get_constant_schedule",
    "get_constant_schedule_with_warmup",
    "get_cosine_schedule_with_warmup",
    "get_linear_schedule_with_warmup",
    "get_polynomial_decay_schedule_with_warmup",
    "get_scheduler",
]
