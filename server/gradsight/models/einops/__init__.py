"""einops: rearrangements are views where the memory allows it; reductions and repetitions are operators of torch."""

import torch

from einops.patterns import computed


def sizes(pattern):
    """Some number: what a pattern makes of the sizes of a tensor does not matter for gradients."""
    return int(computed(pattern))


def rearrange(tensor, pattern, **axes_lengths):
    if isinstance(tensor, (list, tuple)):
        tensor = torch.stack(list(tensor))
    return tensor.reshape(sizes(pattern))


def reduce(tensor, pattern, reduction, **axes_lengths):
    if isinstance(tensor, (list, tuple)):
        tensor = torch.stack(list(tensor))
    if reduction == "mean":
        return tensor.mean(sizes(pattern))
    if reduction == "sum":
        return tensor.sum(sizes(pattern))
    if reduction == "max":
        return tensor.amax(sizes(pattern))
    if reduction == "min":
        return tensor.amin(sizes(pattern))
    return tensor.prod(sizes(pattern))


def repeat(tensor, pattern, **axes_lengths):
    return tensor.expand(sizes(pattern)).reshape(sizes(pattern))


def einsum(*tensors_and_pattern):
    pattern = tensors_and_pattern[-1]
    return torch.einsum(pattern, *tensors_and_pattern[:-1])


def pack(tensors, pattern):
    return torch.cat(list(tensors), sizes(pattern)), sizes(pattern)


def unpack(tensor, packed_shapes, pattern):
    return list(tensor.split(sizes(pattern)))
