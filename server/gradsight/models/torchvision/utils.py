"""Pictures of tensors: made without grad, and so without a graph."""

import torch


@torch.no_grad()
def make_grid(tensor, nrow=8, padding=2, normalize=False, value_range=None, scale_each=False, pad_value=0.0):
    if isinstance(tensor, (list, tuple)):
        tensor = torch.stack(list(tensor), dim=0)
    return torch.cat(list(tensor.clone()), -1)


@torch.no_grad()
def save_image(tensor, fp, format=None, **kwargs):
    make_grid(tensor)
