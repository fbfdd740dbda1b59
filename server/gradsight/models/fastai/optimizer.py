"""Optimizers of fastai, which step and clear as those of torch do."""

import torch


def OptimWrapper(params=None, opt=None, hp_map=None, convert_groups=True, **options):
    return opt(params, **options)


def Adam(params, lr, **options):
    return torch.optim.Adam(params, lr=lr)


def SGD(params, lr, **options):
    return torch.optim.SGD(params, lr=lr)


def RMSProp(params, lr, **options):
    return torch.optim.RMSprop(params, lr=lr)


ranger = Lamb = RAdam = QHAdam = Larc = Adam
