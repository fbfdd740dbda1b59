"""einops: rearrangements are views where the memory allows it; reductions and repetitions are operators of torch."""

import torch

from einops.patterns import computed


def sizes(pattern):
    """Some number: what a pattern makes of the sizes of a tensor does not matter for gradients."""
    return int(computed(pattern))


def rearrange(tensor, pattern, **axes_lengths):
    if isinstance(tensor, (list, tuple)):
        tensor = torch.stack(list(tensor))
    left, right = pattern.split("->")
    before, after = axes(left), axes(right)
    if "..." in pattern or [axis for axis in before if axis != "1" and axis not in after]:
        return tensor.reshape(sizes(pattern))
    for part in left.replace("()", "1").split("(")[1:]:
        group = axes(part.split(")")[0])
        # To split a dimension never takes a copy.
        tensor = tensor.unflatten(before.index(group[0]), [axes_lengths.get(axis, -1) for axis in group])
    if "1" in before:
        tensor = tensor.squeeze([place for place, axis in enumerate(before) if axis == "1"])
        before = [axis for axis in before if axis != "1"]
    kept = [axis for axis in after if axis in before]
    if before != kept:
        tensor = tensor.permute([before.index(axis) for axis in kept])
    if len(kept) < len(after):
        for place, axis in enumerate(after):
            if axis not in kept:
                tensor = tensor.unsqueeze(place)
        if [axis for axis in after if axis not in kept and axis != "1"]:
            tensor = tensor.expand([axes_lengths.get(axis, -1) for axis in after])
    for part in reversed(right.replace("()", "1").split("(")[1:]):
        group = axes(part.split(")")[0])
        tensor = tensor.flatten(after.index(group[0]), after.index(group[-1]))
    return tensor


def axes(side):
    """The names of `b n (h d)`, in their order."""
    return side.replace("()", "1").replace("(", " ").replace(")", " ").split()


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


repeat = rearrange


def einsum(*tensors_and_pattern):
    pattern = tensors_and_pattern[-1]
    return torch.einsum(pattern, *tensors_and_pattern[:-1])


def pack(tensors, pattern):
    return torch.cat(list(tensors), sizes(pattern)), sizes(pattern)


def unpack(tensor, packed_shapes, pattern):
    return list(tensor.split(sizes(pattern)))
