"""Numbers as they were read from a tensor."""

from __future__ import annotations

from gradsight.model.tensors import NO_CUTS, Cut, Tensor
from gradsight.model.values import Number, Value


class ReadNumber(Number):
    """What `item()` gives, as it was read: no arithmetic has made another value of it.  `taken` is the cut by which it was read."""

    __slots__ = ("taken",)

    def __init__(self, cuts: frozenset[Cut], taken: Cut) -> None:
        super().__init__(cuts)
        self.taken = taken


def read_by(number: Value) -> frozenset[Cut]:
    """The cut by which a number was read: `backward()` on it says that a graph was wanted, and no number has one."""
    if not isinstance(number, ReadNumber):
        return NO_CUTS
    cut = number.taken
    made = Tensor(cut.source.site, requires_grad=True)
    made.label = cut.source.label
    return frozenset({Cut(cut.kind, cut.op, cut.site, made, cut.tick)})
