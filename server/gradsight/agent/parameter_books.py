"""The books of the parameters that optimizers hold: which got no gradient, only zeros, or never moved, over all watched steps.

A step costs one look at each `.grad`; values are fingerprinted at the first steps and then ever more rarely.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gradsight.agent.graph import untracked
from gradsight.agent.naming import reachable_leaves
from gradsight.agent.sites import Stack

_MOST_NAMED = 6
_WORD = 8
# So many words are looked at together: on a processor what its cache holds, elsewhere few and large kernels.
_PART = 1 << 15
_LARGE_PART = 1 << 22


@dataclass(eq=False)
class ParameterRecord:
    """What one parameter of an optimizer went through."""

    tensor: weakref.ref[torch.Tensor]
    shape: tuple[int, ...]
    first_value: int | None
    name: str = ""
    steps: int = 0
    with_gradient: int = 0
    measured: int = 0
    not_zero: int = 0
    has_moved: bool = False


@dataclass
class OptimizerBook:
    """An optimizer with its parameters, and the line of its latest step."""

    kind: str
    records: dict[int, ParameterRecord]
    stack: Stack = ()
    steps: int = 0
    has_closure: bool = False


class ParameterBooks:
    """Hears of optimizer steps."""

    def __init__(self) -> None:
        self._books: dict[int, tuple[weakref.ref[Any], OptimizerBook]] = {}

    def before_step(
        self, optimizer: Any, stack: Stack, has_closure: bool, names: Callable[[], dict[int, str]]
    ) -> None:
        """The parameters have not moved yet.  A closure has still to compute the gradients; without one they are there."""
        book = self._book_of(optimizer)
        book.steps += 1
        book.stack = stack
        book.has_closure = has_closure
        for parameter in _parameters(optimizer):
            record = book.records.get(id(parameter))
            if record is None or record.tensor() is not parameter:
                book.records[id(parameter)] = ParameterRecord(
                    weakref.ref(parameter), tuple(parameter.shape), fingerprint(parameter)
                )
        if book.steps == 1:
            # The variables that hold the model may be gone when the report is asked for, and the model with them.
            known = names()
            for key, record in book.records.items():
                record.name = known.get(key, "")
        if not has_closure:
            self._count_gradients(optimizer, book)

    def _count_gradients(self, optimizer: Any, book: OptimizerBook) -> None:
        measures = book.steps & (book.steps - 1) == 0
        for parameter in _parameters(optimizer):
            record = book.records.get(id(parameter))
            if record is None or not parameter.requires_grad:
                continue
            record.steps += 1
            gradient = parameter.grad
            if gradient is None:
                continue
            record.with_gradient += 1
            if measures or not record.not_zero:
                record.measured += 1
                record.not_zero += _is_not_zero(gradient)

    def after_step(self, optimizer: Any) -> None:
        """The parameters have moved, or not; what a closure computed last is still in the gradients."""
        book = self._book_of(optimizer)
        if book.has_closure:
            self._count_gradients(optimizer, book)
        if book.steps & (book.steps - 1) == 0:
            for record in book.records.values():
                _note_move(record)

    def conclude(self) -> list[OptimizerBook]:
        """The books of every optimizer that stepped, with names for their parameters."""
        books = [book for _, book in self._books.values() if book.steps]
        with untracked():
            names = {id(tensor): name for name, tensor in reachable_leaves()}
            for book in books:
                for key, record in book.records.items():
                    _note_move(record)
                    if key in names and record.tensor() is not None:
                        record.name = names[key]
                    record.name = record.name or f"a parameter of shape {list(record.shape)}"
        return books

    def _book_of(self, optimizer: Any) -> OptimizerBook:
        reference, book = self._books.get(id(optimizer), (None, None))
        if book is None or reference is None or reference() is not optimizer:
            book = OptimizerBook(type(optimizer).__name__, {})
            self._books[id(optimizer)] = (weakref.ref(optimizer), book)
        return book


def listed(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(f"`{name}`" if " " not in name else name for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def fingerprint(tensor: torch.Tensor) -> int | None:
    """A number that other values do not have, but for a rare accident.

    The bits of each element count by its position: a step that takes as much from one weight as it adds to another
    (0.3 and -0.2 become 0.2 and -0.3) leaves a plain sum as it was.
    """
    if tensor.layout is not torch.strided or tensor.is_complex() or tensor.device.type == "meta":
        return None
    try:
        data = tensor.detach().reshape(-1)
        if not data.is_contiguous() or data.storage_offset() * data.element_size() % _WORD:
            data = data.clone()
        data = data.view(torch.uint8)
        whole = len(data) // _WORD * _WORD
        words = data[:whole].view(torch.int64)
        is_on_cpu = data.device.type == "cpu"
        size = _PART if is_on_cpu else _LARGE_PART
        places = _spread(min(len(words), size), data.device)
        sums = [
            torch.dot(part, places[: len(part)]) if is_on_cpu else (part * places[: len(part)]).sum()
            for part in words.split(size)
        ]
        return hash((*(int(each) for each in sums), *data[whole:].tolist()))
    except (RuntimeError, TypeError):
        return None


def _spread(count: int, device: torch.device) -> torch.Tensor:
    """Odd numbers that are far apart from each other; products with them wrap around."""
    scattered = torch.arange(1, count + 1, device=device) * 6364136223846793005
    return scattered ^ (scattered >> 29) | 1


def _parameters(optimizer: Any) -> list[torch.Tensor]:
    return [
        parameter
        for group in optimizer.param_groups
        for parameter in group["params"]
        if isinstance(parameter, torch.Tensor)
    ]


def _is_not_zero(gradient: torch.Tensor) -> bool:
    if gradient.layout is not torch.strided or gradient.device.type == "meta":
        return True
    return bool(gradient.detach().count_nonzero())


def _note_move(record: ParameterRecord) -> None:
    tensor = record.tensor()
    if tensor is None or record.first_value is None:
        # Gone, or not comparable: nothing is claimed about it.
        record.has_moved = True
    elif not record.has_moved:
        record.has_moved = fingerprint(tensor) != record.first_value
