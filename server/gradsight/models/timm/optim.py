"""Optimizers by name: they hold the parameters of what they are given."""

import torch


def create_optimizer_v2(
    model_or_params,
    opt="sgd",
    lr=None,
    weight_decay=0.0,
    momentum=0.9,
    foreach=None,
    filter_bias_and_bn=True,
    **kwargs,
):
    held = model_or_params
    if isinstance(held, torch.nn.Module):
        held = [one for one in held.parameters() if one.requires_grad]
    return torch.optim.SGD(held, lr=lr or 0.1, momentum=momentum)


def create_optimizer(args, model, filter_bias_and_bn=True):
    return create_optimizer_v2(model)
