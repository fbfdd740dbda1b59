"""Where a value left the graph, at the price of a look per call: enough to name the line when backward finds no graph.

A *loss* is a call that was given a tensor of the graph and returned one outside it, or a number.  Whatever is computed of
its result afterwards remembers it.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from gradsight.agent.cuts import FAULT_OF_CUT, no_grad_scope
from gradsight.agent.faults import Fault, calls_of, step_at
from gradsight.agent.oplog import operator_label
from gradsight.agent.sites import Stack, place_of, text_of

_MOST_VALUES = 4096
_MOST_MARKS = 20_000
_MOST_RECENT = 64
_LONGEST_LIST = 4096
_NUMBERS = frozenset(("item", "tolist", "__float__", "numpy", "__array__"))
_BUILDERS = frozenset(("tensor", "as_tensor", "asarray", "full", "FloatTensor"))
_SWITCHES = frozenset(("_set_grad_enabled", "set_grad_enabled"))
_DETACHES = {"detach": "detach", "detach_": "detach", "__get__": "data"}


class LostPath(NamedTuple):
    """The call that lost the graph.  `kind` is that of a cut."""

    kind: str
    name: str
    stack: Stack


class LightCuts:
    """Remembers which tensors come from the graph without being in it."""

    def __init__(self) -> None:
        self._marks: dict[int, tuple[weakref.ref[torch.Tensor], LostPath]] = {}
        self._values: OrderedDict[float, LostPath] = OrderedDict()
        self._recent: deque[tuple[weakref.ref[torch.Tensor], LostPath]] = deque(maxlen=_MOST_RECENT)
        self._asked: OrderedDict[int, tuple[weakref.ref[torch.Tensor], Stack]] = OrderedDict()
        self.switched_off: Stack = ()
        self.inference: Stack = ()
        self.on_loss: Callable[[LostPath, Any], None] | None = None

    def note(self, func: Any, args: Any, result: Any, capture: Callable[[], Stack]) -> None:
        """A call has returned."""
        if result is None:
            if getattr(func, "__name__", "") in _SWITCHES and args and args[0] is False:
                self.switched_off = capture()
        elif isinstance(result, torch.Tensor):
            if not result.requires_grad:
                self._note_tensor(func, args, result, capture)
            elif getattr(func, "__name__", "") == "requires_grad_":
                self._asked[id(result)] = (weakref.ref(result), capture())
                if len(self._asked) > _MOST_RECENT:
                    self._asked.popitem(last=False)
        elif isinstance(result, (tuple, list)) and result and isinstance(result[0], torch.Tensor):
            for each in result[:4]:
                if isinstance(each, torch.Tensor) and not each.requires_grad:
                    self._note_tensor(func, args, each, capture)
        elif isinstance(result, (float, list)) and args and isinstance(args[0], torch.Tensor):
            name = getattr(func, "__name__", "")
            if name in _NUMBERS:
                lost = self._lost_by(args) or (
                    LostPath("number", name, capture()) if args[0].requires_grad else None
                )
                if lost is not None:
                    if self.on_loss is not None:
                        self.on_loss(lost, args)
                    for value in _numbers(result):
                        self._remember(value, lost)

    def lost(self, tensor: Any) -> LostPath | None:
        """The call that lost the graph of this tensor."""
        mark = self._marks.get(id(tensor))
        return mark[1] if mark is not None and mark[0]() is tensor else None

    def asked_at(self, tensor: torch.Tensor) -> Stack:
        """Where this tensor was lately told to require grad."""
        asked = self._asked.get(id(tensor))
        return asked[1] if asked is not None and asked[0]() is tensor else ()

    def taken(self, value: Any) -> LostPath | None:
        """The call that took this number out of the graph."""
        return self._values.get(value) if isinstance(value, float) else None

    def taken_values(self, tensor: torch.Tensor) -> LostPath | None:
        """The call that took out of the graph the numbers of which this tensor consists, all of them."""
        if not self._values or not tensor.is_floating_point() or not 0 < tensor.numel() <= _LONGEST_LIST:
            return None
        found = [self._values.get(value) for value in tensor.reshape(-1).tolist()]
        return found[0] if all(each is not None for each in found) else None

    def recent(self) -> Iterator[tuple[torch.Tensor, LostPath]]:
        """The latest losses with what they were given, newest first, as far as it is still there."""
        for reference, lost in reversed(self._recent):
            source = reference()
            if source is not None and lost.stack:
                yield source, lost

    def _note_tensor(self, func: Any, args: Any, result: torch.Tensor, capture: Callable[[], Stack]) -> None:
        lost = self._lost_by(args)
        name = getattr(func, "__name__", "")
        if lost is None and name in _BUILDERS and self._values:
            lost = next((self._values[value] for value in _numbers(args) if value in self._values), None)
        source = (
            next((tensor for tensor in tensors_in(args) if tensor.requires_grad), None)
            if lost is None
            else None
        )
        if source is not None:
            lost = LostPath(_kind_of(name), name, capture())
            self._recent.append((weakref.ref(source), lost))
            if result.is_inference():
                self.inference = lost.stack
        if lost is None:
            return
        if self.on_loss is not None:
            self.on_loss(lost, args)
        if len(self._marks) > _MOST_MARKS:
            self._marks = {key: mark for key, mark in self._marks.items() if mark[0]() is not None}
            if len(self._marks) > _MOST_MARKS:
                self._marks.clear()
        self._marks[id(result)] = (weakref.ref(result), lost)

    def _lost_by(self, args: Any) -> LostPath | None:
        if not self._marks:
            return None
        for tensor in tensors_in(args):
            lost = self.lost(tensor)
            if lost is not None:
                return lost
        return None

    def _remember(self, value: float, lost: LostPath) -> None:
        # A number with few digits comes from anywhere.
        if value == round(value, 3):
            return
        self._values[value] = lost
        if len(self._values) > _MOST_VALUES:
            self._values.popitem(last=False)


def fault_of_lost(lost: LostPath, what: str, backward: Stack, raised: str) -> Fault:
    """The fault of a backward that found no graph, at the call that lost it."""
    place = place_of(lost.stack[0])
    label = ".data" if lost.kind == "data" else operator_label(lost.name)
    steps = list(step_at("cut", f"cut here by `{label}`", lost.stack))
    shown = text_of(place) or label
    message = f"`{shown}` cuts {what} from the graph, so backward finds none"
    if lost.kind == "no_grad":
        message = f"{what} was computed with grad mode off, so backward finds no graph"
        place = no_grad_scope(lost.stack) or place
    elif lost.kind == "non-diff":
        message = f"`{shown}` has no gradient (`{label}`), so backward finds no graph"
    elif lost.kind == "number":
        message = (
            f"`{shown}` takes a number out of the graph, and {what} is built of it: backward finds no graph"
        )
    steps += [*calls_of(lost.stack)[:1], *step_at("needed", "backward fails here", backward)]
    kind = FAULT_OF_CUT.get(lost.kind, "detached")
    return Fault(kind, message, place, tuple(steps), "error", {"torch": raised})


def _kind_of(name: str) -> str:
    if name in _DETACHES:
        return _DETACHES[name]
    if not torch.is_grad_enabled():
        return "no_grad"
    return "tensor" if name in _BUILDERS else "non-diff"


def tensors_in(args: Any) -> Iterator[torch.Tensor]:
    """The tensors among the arguments of a call, those in lists included."""
    for item in args:
        if isinstance(item, torch.Tensor):
            yield item
        elif isinstance(item, (tuple, list)):
            for inner in item[:64]:
                if isinstance(inner, torch.Tensor):
                    yield inner


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value[:_LONGEST_LIST]:
            yield from _numbers(item)
