"""Follows data from leaf to loss even where the graph does not, to see where a graph was cut.

Each storage carries its *sources* (the leaves its values came from) and its *cuts* (the lines that left the graph on the
way).  Numbers taken out of a tensor leave the shadow; their lines are kept apart as *escapes*.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradsight_dev.fuzz.oracle.execution import run, wants_gradient
from gradsight_dev.fuzz.oracle.passes import leaves_behind, program_line, program_stack, watched_passes
from gradsight_dev.fuzz.oracle.reference import has_memory
from gradsight_dev.fuzz.oracle.steering import Steering
from gradsight_dev.fuzz.oracle.switches import SWITCH, Switches

ESCAPES = ("item", "tolist", "numpy", "__float__", "__int__", "__array__")
MODE_NAMES = ("no_grad", "inference_mode", "set_grad_enabled")


@dataclass
class Story:
    """What the watched run showed."""

    cut_leaves: set[int] = field(default_factory=set)
    cut_lines: set[int] = field(default_factory=set)
    escapes: set[int] = field(default_factory=set)
    leaves: list[torch.Tensor] = field(default_factory=list)
    inference_lines: set[int] = field(default_factory=set)
    """Where tensors were made that inference mode keeps out of every later graph."""


def follow(code: CodeType, text: str, steering: Steering) -> Story:
    """Run the program under the shadow and tell what was cut off at its backward passes."""
    shadow = _Shadow(code.co_filename)
    story = Story()

    def before(roots: Any, keeps_graph: bool, line: int) -> None:
        reached = leaves_behind(roots)
        for root in roots:
            sources, cuts = shadow.of(root)
            story.cut_leaves |= (sources | shadow.escaped) - reached
            story.cut_lines |= cuts

    with watched_passes(code.co_filename, before), shadow.switches.watching_inference():
        run(code, steering, shadow)
    story.escapes = shadow.escapes
    switching = shadow.switches.innermost
    story.inference_lines = _with_decorators(text, shadow.inference_lines, switching)
    story.cut_lines = _with_decorators(text, story.cut_lines, switching)
    story.leaves = [leaf for leaf in shadow.alive if id(leaf) in story.cut_leaves and wants_gradient(leaf)]
    return story


class _Shadow(TorchFunctionMode):
    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.switches = Switches(path)
        self.alive: list[torch.Tensor] = []
        self.escapes: set[int] = set()
        self.escaped: set[int] = set()
        self.inference_lines: set[int] = set()
        self._sources: dict[int, set[int]] = {}
        self._cuts: dict[int, set[int]] = {}

    def of(self, tensor: torch.Tensor) -> tuple[set[int], set[int]]:
        """The leaves behind a tensor's values, and the cuts on the way."""
        if not has_memory(tensor):
            return set(), set()
        place = _storage(tensor)
        sources = self._sources.get(place, set())
        if wants_gradient(tensor):
            self.alive.append(tensor)
            sources = sources | {id(tensor)}
        return sources, self._cuts.get(place, set())

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") == SWITCH:
            self.switches.switched(bool(args[0]))
            return func(*args, **kwargs)
        given = [tensor for tensor in _tensors((args, kwargs)) if has_memory(tensor)]
        recorded = any(tensor.requires_grad for tensor in given)
        result = func(*args, **kwargs)
        if torch.is_inference_mode_enabled():
            self.inference_lines.update(program_stack(self.path), self.switches.lines)
        sources: set[int] = set()
        cuts: set[int] = set()
        for tensor in given:
            more_sources, more_cuts = self.of(tensor)
            sources |= more_sources
            cuts |= more_cuts
        if not sources:
            return result
        if getattr(func, "__name__", "") in ESCAPES:
            self.escapes.add(program_line(self.path))
            self.escaped |= sources
        received = [tensor for tensor in _tensors(result) if has_memory(tensor)]
        if result is None and given and getattr(func, "__name__", "") == "__setitem__":
            received = [given[0]]
        for tensor in received:
            self.alive.append(tensor)
            place = _storage(tensor)
            self._sources.setdefault(place, set()).update(sources)
            own = set(cuts)
            if recorded and not tensor.requires_grad:
                # Where grad mode is off, what switched it off and every call on the way are part of the story.
                stack = program_stack(self.path)
                own.update(stack[:1] if torch.is_grad_enabled() else (*stack, *self.switches.lines))
            self._cuts.setdefault(place, set()).update(own)
        return result


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


def _with_decorators(text: str, lines: set[int], switching: set[int]) -> set[int]:
    """The lines, and the decorators that switched grad mode off around one of them.

    No frame runs on the line of a decorator.  It counts above a function in which one of the lines lies if it is torch's
    own, or is called by the name of a function or class of the program in which one of the lines is a switch.
    """
    found = set(lines)
    tree = ast.parse(text)
    managers = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and _covers(node, lines & switching)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _covers(node, lines):
            for decorator in node.decorator_list:
                name = ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
                if name.endswith(MODE_NAMES) or name in managers:
                    found.add(decorator.lineno)
    return found


def _covers(node: ast.FunctionDef | ast.ClassDef, lines: set[int]) -> bool:
    return any(node.lineno <= line <= (node.end_lineno or 0) for line in lines)
