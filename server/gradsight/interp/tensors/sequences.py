"""Layers that are given sequences: with `batch_first=True` they exchange the first two dimensions, before and after their work.

out, state = nn.LSTM(4, 8, batch_first=True)(x)     out is a transposed view: a Linear copies it and saves the copy
out, state = nn.LSTM(4, 8)(packed)                  out is packed as well: `out.data` is a part of it, and no cut
"""

from __future__ import annotations

from typing import Any

from gradsight.interp.tensors.memory_order import can_merge, layout_of, swapped
from gradsight.interp.tensors.structures import PACKED
from gradsight.model.tensors import MemoryOrder, Tensor
from gradsight.model.values import Seq, Value

GIVEN = frozenset({"input", "query", "key", "value"})
"""The arguments whose first two dimensions are exchanged."""
MAY_BE_PACKED = "<may be packed>"
RECURRENT = frozenset({"nn.RNN", "nn.GRU", "nn.LSTM"})


def is_kept_exchanged(tensor: Tensor) -> bool:
    """Whether a layer that exchanges the first two dimensions of a sequence saves its memory: else they are merged by a copy."""
    layout, shape = layout_of(tensor), tensor.shape
    if layout is None or shape is None:
        return False
    if len(shape) != 3:
        return len(shape) == 2 and tensor.dense
    exchanged = swapped(layout, [0, 1])
    return exchanged is not None and can_merge(exchanged, (shape[1], shape[0], shape[2]), 1)


def lay_out(name: str, options: dict[str, Any], given: Value, result: Value) -> None:
    """What the result of such a layer is, and how it lies in memory."""
    if not isinstance(result, Seq) or not result.items or not isinstance(result.items[0], Tensor):
        return
    out = result.items[0]
    if name in RECURRENT and not isinstance(given, Tensor):
        result.items[0] = packed(out)
        return
    shape = given.shape if isinstance(given, Tensor) else None
    if name in RECURRENT and isinstance(given, Tensor) and given.node is None and given.dtype == "?":
        # Of data that is not known, it may be packed.
        out.attributes = {**(out.attributes or {}), MAY_BE_PACKED: True}
    if name in RECURRENT and shape is not None and len(shape) == 3:
        out.shape = (shape[0], shape[1], width_of(options))
    if options.get("batch_first", False) is not False and (shape is None or len(shape) == 3):
        out.dense, out.rows_dense, out.batch_merges = False, True, False
        out.layout = MemoryOrder((1, 0, 2))


def packed(data: Tensor) -> Seq:
    """A packed sequence with these numbers: more about the order of its parts may follow."""
    result = Seq("tuple", [data, Tensor(data.site, dtype="int")], False)
    result.fields = PACKED
    return result


def width_of(options: dict[str, Any]) -> int | None:
    """How many numbers a recurrent layer makes of each step."""
    width, both = (
        options.get("proj_size", 0) or options.get("hidden_size"),
        options.get("bidirectional", False),
    )
    if not isinstance(width, int) or not isinstance(both, bool):
        return None
    return 2 * width if both else width
