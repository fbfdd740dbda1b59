"""Helpers of the algorithms: none of them touches a gradient."""

import torch


def polyak_update(params, target_params, tau):
    with torch.no_grad():
        for parameter, followed in zip(target_params, params):
            parameter.data.mul_(1 - tau)
            parameter.data.add_(followed.data, alpha=tau)


def get_parameters_by_name(model, included_names):
    return [parameter for name, parameter in model.state_dict().items() if name in included_names]


def update_learning_rate(optimizer, learning_rate):
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
