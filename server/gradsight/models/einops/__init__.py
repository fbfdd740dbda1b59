"""einops: rearrangements are views where the memory allows it; reductions and repetitions are operators of torch."""

import torch

from einops._patterns import computed


def _sizes(pattern):
    """Some number: what a pattern makes of the sizes of a tensor does not matter for gradients."""
    return int(computed(pattern))


def rearrange(tensor, pattern, **axes_lengths):
    if isinstance(tensor, (list, tuple)):
        tensor = torch.stack(list(tensor))
    left, right = pattern.split("->")
    before, after = _axes(left), _axes(right)
    if "..." in pattern or [axis for axis in before if axis != "1" and axis not in after]:
        return tensor.reshape(_sizes(pattern))
    tensor = _split(tensor, left, before, axes_lengths)
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
        group = _axes(part.split(")")[0])
        tensor = tensor.flatten(after.index(group[0]), after.index(group[-1]))
    return tensor


def _axes(side):
    """The names of `b n (h d)`, in their order."""
    return side.replace("()", "1").replace("(", " ").replace(")", " ").split()


def _split(tensor, left, before, axes_lengths):
    for part in left.replace("()", "1").split("(")[1:]:
        group = _axes(part.split(")")[0])
        # To split a dimension never takes a copy.
        tensor = tensor.unflatten(before.index(group[0]), [axes_lengths.get(axis, -1) for axis in group])
    return tensor


def reduce(tensor, pattern, reduction, **axes_lengths):
    if isinstance(tensor, (list, tuple)):
        tensor = torch.stack(list(tensor))
    left, right = pattern.split("->")
    before, after = _axes(left), _axes(right)
    if "..." in pattern:
        return _reduced(tensor, reduction, _sizes(pattern))
    gone = [place for place, axis in enumerate(before) if axis not in after]
    kept = " ".join(axis for axis in before if axis in after)
    return rearrange(
        _reduced(_split(tensor, left, before, axes_lengths), reduction, gone), kept + "->" + right
    )


def _reduced(tensor, reduction, places):
    if reduction == "mean":
        return tensor.mean(places)
    if reduction == "sum":
        return tensor.sum(places)
    if reduction == "max":
        return tensor.amax(places)
    if reduction == "min":
        return tensor.amin(places)
    for place in reversed(places):
        tensor = tensor.prod(place)
    return tensor


def repeat(tensor, pattern, **axes_lengths):
    return rearrange(tensor, pattern, **axes_lengths)


def einsum(*tensors_and_pattern):
    pattern = tensors_and_pattern[-1]
    return torch.einsum(pattern, *tensors_and_pattern[:-1])


def pack(tensors, pattern):
    place = pattern.split().index("*")
    return torch.cat(list(tensors), place), [one.shape[place : place + 1] for one in tensors]


def unpack(tensor, packed_shapes, pattern):
    # Slices: unlike the parts that `split` gives, each of them may be written.
    place = pattern.split().index("*")
    return [tensor.narrow(place, _sizes(pattern), _sizes(pattern)) for _ in packed_shapes]
