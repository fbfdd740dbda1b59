"""Lightning Fabric: the user writes the loop, Fabric calls backward."""

from contextlib import contextmanager

import torch
from torch import nn


def seed_everything(seed=None, workers=False):
    return seed


class Fabric:
    def __init__(self, *, accelerator="auto", devices="auto", precision=None, **options):
        self.device = torch.device("cpu")
        self.is_global_zero = True
        self.global_rank = 0
        self.local_rank = 0
        self.world_size = 1

    def launch(self, function=None, *args, **kwargs):
        return function(self, *args, **kwargs) if function is not None else None

    def setup(self, module, *optimizers, scheduler=None, move_to_device=True):
        return (module, *optimizers) if optimizers else module

    def setup_module(self, module, move_to_device=True):
        return module

    def setup_optimizers(self, *optimizers):
        return optimizers[0] if len(optimizers) == 1 else optimizers

    def setup_dataloaders(self, *loaders, use_distributed_sampler=True, move_to_device=True):
        return loaders[0] if len(loaders) == 1 else list(loaders)

    def backward(self, tensor, *args, model=None, **kwargs):
        tensor.backward(*args, **kwargs)

    def clip_gradients(
        self, module, optimizer, clip_val=None, max_norm=None, norm_type=2.0, error_if_nonfinite=True
    ):
        if clip_val is not None:
            return nn.utils.clip_grad_value_(module.parameters(), clip_val)
        return nn.utils.clip_grad_norm_(module.parameters(), max_norm)

    @contextmanager
    def autocast(self):
        yield

    @contextmanager
    def no_backward_sync(self, module, enabled=True):
        yield

    @contextmanager
    def init_module(self, empty_init=None):
        yield

    @contextmanager
    def init_tensor(self):
        yield

    @contextmanager
    def rank_zero_first(self, local=False):
        yield

    def to_device(self, obj):
        return obj

    def all_gather(self, data, group=None, sync_grads=False):
        return data

    def all_reduce(self, data, group=None, reduce_op="mean"):
        return data

    def broadcast(self, obj, src=0):
        return obj

    def barrier(self, name=None):
        pass

    def print(self, *values, **options):
        pass

    def log(self, name, value, step=None):
        pass

    def log_dict(self, metrics, step=None):
        pass

    def call(self, hook_name, *args, **kwargs):
        pass

    def save(self, path, state, filter=None):
        pass

    def load(self, path, state=None, strict=True):
        return {}

    def load_raw(self, path, obj, strict=True):
        pass

    @staticmethod
    def seed_everything(seed=None, workers=None):
        return seed
