"""Which parameters a cut keeps from the loss, found in the steps of a watch that are looked at closely.

In `h = encoder(x).detach(); head(h).sum().backward()` the call of `detach` is a loss (see `light_cuts`) with the leaves of
the encoder below what it was given.  `head(h)` *takes it in*: a call of the graph is given what was lost.  The backward
that goes over the node of `head(h)` is the one that misses these leaves.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from threading import get_ident
from typing import Any

import torch

from gradsight.agent.cuts import WEIGHT_OF_CUT, cut_fault
from gradsight.agent.faults import Fault, Ledger, quietly
from gradsight.agent.graph import leaf_of, walk
from gradsight.agent.light_cuts import LightCuts, LostPath, tensors_in
from gradsight.agent.numbering import number_of
from gradsight.agent.shadow import Divergence, Leaf, Shadow
from gradsight.agent.sites import Stack

TensorRef = weakref.ref[torch.Tensor]
_MOST_CALLS = 20_000
_MOST_WALKS = 64


class MissedLeaves:
    """Hears of losses, of calls that take them in, and of backwards; `is_on` in the steps that are looked at."""

    def __init__(self, cuts: LightCuts, ledger: Ledger) -> None:
        self.ledger = ledger
        self.cuts = cuts
        self.is_on = True
        self._leaves: dict[LostPath, dict[int, TensorRef]] = {}
        self._joined: dict[LostPath, set[LostPath]] = {}
        self._taken_in: dict[int, tuple[LostPath, ...]] = {}
        self._missed: dict[LostPath, Stack] = {}
        self._walks = 0
        self._thread = get_ident()

    def begin_step(self, is_on: bool) -> None:
        """Numbers of nodes are good for one step."""
        self.is_on = is_on
        self._taken_in.clear()
        self._walks = 0

    @quietly
    def lost(self, lost: LostPath, args: Any) -> None:
        """This call lost the graph, or was given what is lost already."""
        if not self.is_on or not lost.stack:
            return
        for tensor in tensors_in(args):
            if tensor.requires_grad:
                known = self._leaves.setdefault(lost, {})
                known.update((id(each), each) for each in map(weakref.ref, self._leaves_under(tensor)))
            else:
                other = self.cuts.lost(tensor)
                if other is not None and other != lost:
                    self._joined.setdefault(lost, set()).add(other)

    def _leaves_under(self, tensor: torch.Tensor) -> Iterator[torch.Tensor]:
        if tensor.grad_fn is None:
            yield tensor
        elif self._walks < _MOST_WALKS:
            self._walks += 1
            for node in walk((tensor,)):
                leaf = leaf_of(node)
                if leaf is not None:
                    yield leaf

    @quietly
    def made(self, values: Iterable[Any], number: int) -> None:
        """A call of the graph was given these; its node has this number."""
        if not self.is_on or len(self._taken_in) > _MOST_CALLS or get_ident() != self._thread:
            return
        found = [
            lost
            for value in values
            for lost in (
                (self.cuts.taken(value),)
                if isinstance(value, float)
                else tuple(self.cuts.lost(each) for each in tensors_in((value,)))
            )
            if lost is not None and lost.stack
        ]
        if found:
            self._taken_in[number] = tuple(found)

    @quietly
    def backward(self, roots: tuple[Any, ...], stack: Stack) -> None:
        """A backward is about to run."""
        if not self.is_on or not self._taken_in or get_ident() != self._thread:
            return
        for node in walk(roots):
            for lost in self._taken_in.get(number_of(node), ()):
                for each in self._with_joined(lost):
                    self._missed.setdefault(each, stack)

    def _with_joined(self, lost: LostPath) -> set[LostPath]:
        found: set[LostPath] = set()
        todo = [lost]
        while todo:
            each = todo.pop()
            if each not in found:
                found.add(each)
                todo += self._joined.get(each, ())
        return found

    def faults(self, untrained: list[tuple[str, TensorRef]]) -> tuple[list[Fault], set[int]]:
        """The cuts that explain why these parameters have no gradient, and the ids of the references that are explained.

        A reference stands for its parameter even when that is gone: Python has one for each.
        """
        by_cut: dict[LostPath, list[tuple[str, TensorRef]]] = {}
        for name, parameter in untrained:
            cuts = [lost for lost in self._missed if id(parameter) in self._leaves.get(lost, {})]
            if cuts:
                by_cut.setdefault(max(cuts, key=_weight), []).append((name, parameter))
        faults = [self._fault(lost, leaves) for lost, leaves in by_cut.items()]
        return faults, {id(parameter) for leaves in by_cut.values() for _, parameter in leaves}

    def _fault(self, lost: LostPath, named: list[tuple[str, TensorRef]]) -> Fault:
        leaves = [Leaf(0, parameter, (), True, 0, name) for name, parameter in named]
        event = Divergence(lost.kind, lost.name, lost.stack, 0)
        return cut_fault(event, leaves, self._missed[lost], Shadow())


def _weight(lost: LostPath) -> int:
    return WEIGHT_OF_CUT.get(lost.kind, 2)
