"""How a tensor lies in its memory: which views and results are contiguous where their source is."""

from __future__ import annotations

from gradsight.interp.tensors.einsum import SavedOperand
from gradsight.interp.tensors.memory_order import (
    SWAPS,
    can_merge,
    compact,
    is_in_order,
    layout_of,
    of_result,
    swapped,
    values_in,
)
from gradsight.interp.tensors.shapes import numel
from gradsight.model.tensors import MemoryOrder, Shape, Tensor
from gradsight.model.values import Slice, Value
from gradsight.ops.traits import having

DENSE_VIEWS = having("stays-dense") | {"alias"}
LEADING_VIEWS = having("leads") - {"index"}
"""Views that take a part along `dim`: contiguous along the first dimension, with gaps along the others."""
TWISTS = having("twists")


KEEPS_ROWS = {"scaled_dot_product_attention"}
"""Operators that keep an operand itself if its rows are dense: heads that were brought to the front by `transpose(1, 2)`."""
MERGES_BATCH = {"matmul"}
"""Operators that take all dimensions but the last two for one: what cannot be merged is copied, and the copy is saved."""
MERGES_ROWS = {
    "linear",
    "Linear",
    "GRU",
    "RNN",
    "MultiheadAttention",
    "multi_head_attention_forward",
    "Bilinear",
    "bilinear",
}
"""Operators that take all dimensions but the last for one."""
WANTS_DENSE = {
    "LSTM", "GroupNorm", "group_norm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "instance_norm",
}  # fmt: skip
"""Operators that save a contiguous copy of an operand which is not contiguous."""


def stays_in_rows(op: str, bound: dict[str, Value], source: Tensor) -> bool:
    """Whether a view of a tensor with dense rows has dense rows, too."""
    if not source.rows_dense:
        return False
    last = len(source.shape) - 1 if source.shape is not None else None
    if op in SWAPS:
        dims = [value for name, value in bound.items() if name not in ("self", "input")]
        return last is not None and all(isinstance(dim, int) and dim not in (-1, last) for dim in dims)
    if op == "permute":
        order = [item for item in values_in(bound.get("dims")) if isinstance(item, int)]
        return bool(order) and order[-1] in (-1, len(order) - 1)
    if op in LEADING_VIEWS:
        dim = bound.get("dim", 0)
        return isinstance(dim, int) and (op not in ("unbind", "select") or dim not in (-1, last))
    return source.dense and op in DENSE_VIEWS


def batch_stays_merged(op: str, bound: dict[str, Value], source: Tensor) -> bool:
    """Whether all dimensions but the last two of a view can be taken for one without a copy, as those of its source can."""
    if op not in TWISTS or not source.batch_merges:
        return source.batch_merges
    rank = len(source.shape) if source.shape is not None else None
    if op in SWAPS:
        dims = [value for name, value in bound.items() if name not in ("self", "input")]
        last = (-1, -2) if rank is None else (-1, -2, rank - 1, rank - 2)
        return all(isinstance(dim, int) and dim in last for dim in dims)
    if op == "permute":
        order = [item for item in values_in(bound.get("dims")) if isinstance(item, int)]
        return order[:-2] == list(range(len(order) - 2))
    return op in ("adjoint", "mT", "mH") or (rank is not None and rank < 3)


def keeps_operand(op: str, tensor: Tensor, operands: list[Tensor], wants_dense: bool) -> bool:
    """Whether an operator saves an operand itself; `wants_dense`: it copies one that does not lie as the operator needs it."""
    if tensor.dense and op not in MERGES_BATCH:
        return True
    if op in MERGES_BATCH and any(is_spread(tensor, one) for one in operands if one is not tensor):
        return False
    if op in MERGES_BATCH or op in MERGES_ROWS:
        layout, last = merged_by(op, tensor, operands)
        if layout is not None and not layout.is_open:
            return can_merge(layout, tensor.shape, last)
        if layout is not None and last == 1 and not can_merge(layout, tensor.shape, last):
            return False
        if layout is None and op in MERGES_ROWS:
            return False
    if (
        (wants_dense or op in WANTS_DENSE)
        and not tensor.dense
        and not (tensor.rows_dense and op in KEEPS_ROWS)
    ):
        return False
    return op not in MERGES_BATCH or batch_is_kept(tensor, operands)


def merged_by(op: str, tensor: Tensor, operands: list[Tensor]) -> tuple[MemoryOrder | None, int]:
    """How an operand lies when its dimensions are merged, and how many of the last ones are not."""
    layout = layout_of(tensor)
    others = [one for one in operands if one is not tensor]
    if op in MERGES_ROWS:
        return layout, 1
    if not others or rank_of(tensor) in (1, 2) or not all(rank_of(one) in (1, 2) for one in others):
        return layout, 2
    if operands[0] is not tensor and layout is not None:
        # `matrix @ batch` is computed from the batch with its last two dimensions exchanged.
        return swapped(layout, [-2, -1]), 1
    return layout, 1


def batch_is_kept(tensor: Tensor, operands: list[Tensor]) -> bool:
    """Whether the batches of an operand can be merged; three dimensions have nothing to merge, nor has a batch of one."""
    if tensor.batch_merges:
        return True
    if tensor.shape is not None and sum(size != 1 for size in tensor.shape[:-2]) <= 1:
        return True
    return all(one.shape is not None and len(one.shape) <= 3 for one in operands)


def is_spread(tensor: Tensor, other: Tensor) -> bool:
    """Whether one of several batch dimensions is repeated for the other operand: then the batches cannot be merged without a copy."""
    if tensor.shape is None or other.shape is None:
        return False
    own, wanted = tensor.shape[:-2], other.shape[:-2]
    pairs = list(zip(reversed(own), reversed(wanted)))
    return any(size != 1 for size in own) and any(size == 1 and needed != 1 for size, needed in pairs)


def rank_of(tensor: Tensor) -> int | None:
    return len(tensor.shape) if tensor.shape is not None else None


def leads(op: str, bound: dict[str, Value]) -> bool:
    """Whether a view takes a run of the first dimension."""
    return op in LEADING_VIEWS and bound.get("dim", 0) in (0, None)


def is_leading(parts: list[Value], shape: Shape) -> bool:
    """Whether a basic index takes one run of memory: numbers first, then at most one slice without a step.

    `...` stands for whole dimensions, or for none: `x[..., 1:]` of a vector is `x[1:]`.
    """
    named = [part for part in parts if part is not None and part is not Ellipsis]
    is_nothing = shape is not None and len(named) == len(shape)
    sliced = False
    for part in parts:
        if part is Ellipsis:
            sliced = sliced or not is_nothing
            continue
        if part is None:
            # A new dimension of size 1 moves nothing.
            continue
        if isinstance(part, Slice):
            if part.start is None and part.stop is None and part.step is None:
                sliced = True
                continue
            if sliced or part.step not in (None, 1):
                return False
            sliced = True
        elif sliced:
            return False
    return True


def still_overlaps(tensor: Tensor, shape: Shape) -> bool:
    """Whether a part of a tensor with shared elements has more elements than there is memory for."""
    owner: Tensor | None = tensor
    while owner is not None and owner.overlapping:
        owner = owner.source
    if owner is None or owner.shape is None or shape is None:
        return False
    held, shown = numel(owner.shape), numel(shape)
    return held is not None and shown is not None and shown > held


ALL_DIMENSIONS = frozenset(range(64))


def narrowed_dimensions(tensor: Tensor) -> frozenset[int]:
    """The dimensions along which a view shows less than its memory holds; all of them where that cannot be told."""
    source = tensor.source
    if tensor.dense:
        return frozenset()
    if source is None or not source.dense or tensor.twist or tensor.overlapping or tensor.layout is None:
        return ALL_DIMENSIONS
    shape, whole = tensor.shape, source.shape
    if shape is None or whole is None or len(shape) != len(whole):
        return ALL_DIMENSIONS
    return frozenset(
        place for place, (own, all_of_it) in enumerate(zip(shape, whole)) if own is None or own != all_of_it
    )


def merges(tensor: Tensor, told: SavedOperand) -> bool:
    """Whether the dimensions that a product merges lie next to each other in the memory of a view."""
    return not told.dense and not told.whole & narrowed_dimensions(tensor)


def lay_out(
    result: Tensor, op: str, shape: str, bound: dict[str, Value], operands: list[tuple[str, Tensor]]
) -> None:
    """Say of a new result how it lies in memory: as operands do, or anew; `shape`: the measured shape of it."""
    if op in KEEPS_ROWS and is_fused(bound) is not False:
        queries = [layout_of(tensor) for name, tensor in operands if name == "query"]
        order = compact(queries[0]) if queries and queries[0] is not None else None
        result.dense = is_in_order(order)
        result.layout = order if is_fused(bound) else None
        return
    followed = [tensor for _, tensor in operands] if keeps_layout(op, shape, operands) else []
    result.dense = all(tensor.dense for tensor in followed)
    if not result.dense:
        result.layout = of_result(followed)


def is_fused(bound: dict[str, Value]) -> bool | None:
    """Whether attention is computed in one step: what it returns then lies as its query does, without the gaps.

    Else it is a product of matrices.
    """
    mask, chance = bound.get("attn_mask"), bound.get("dropout_p", 0.0)
    if isinstance(mask, Tensor):
        needs = mask.needs_grad()
        learned: bool | None = needs if isinstance(needs, bool) else None
    else:
        learned = False if mask is None else None
    if learned or (isinstance(chance, (int, float)) and chance != 0):
        return False
    return None if learned is None or not isinstance(chance, (int, float)) else True


def keeps_layout(op: str, shape: str, operands: list[tuple[str, Tensor]]) -> bool:
    """Whether a result lies in memory as its operands do: element by element, told by the measured shape.

    A copy of what shows one element several times, `x.expand(2, 3).clone()`, has each in its place.
    """
    if op == "clone" and any(tensor.overlapping for _, tensor in operands):
        return False
    return op in ("clone", "dropout", "flip") or shape == "broadcast" or shape.startswith("like:")


def equal_parts(op: str, bound: dict[str, Value]) -> bool:
    """Whether all parts certainly have the same size."""
    if op == "unbind":
        return True
    tensor = next(iter(bound.values()), None)
    dim, number = (
        bound.get("dim", 0),
        bound.get("chunks", bound.get("split_size", bound.get("split_size_or_sections"))),
    )
    shape = tensor.shape if isinstance(tensor, Tensor) else None
    if (
        shape is None
        or not isinstance(dim, int)
        or not isinstance(number, int)
        or not -len(shape) <= dim < len(shape)
    ):
        return False
    size = shape[dim]
    return isinstance(size, int) and number > 0 and size % number == 0


def repeats(before: Shape, after: Shape) -> bool:
    """Whether a view certainly shows some element more than once."""
    first, second = numel(before), numel(after)
    return first is not None and second is not None and second > first
