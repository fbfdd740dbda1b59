"""Finds the lines that make a program fail, by running it again under watch.

*Stale saves*: every saved tensor is watched from line to line through its version counter, which views and detached tensors
share; the line that was running when a counter moved has written.  Version checks are off while saves are hooked, so the
failing pass goes on and shows all its stale saves at once.
*Freed graphs*: each pass that does not retain its graph frees its nodes; a later pass that needs one of them names the first.
*Broken views*: one of several views whose base was written refuses `grad_fn` from that line on.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import torch

from gradsight_dev.fuzz.oracle.execution import run
from gradsight_dev.fuzz.oracle.passes import Node, nodes_behind, watched_passes
from gradsight_dev.fuzz.oracle.reference import is_elsewhere, same_values
from gradsight_dev.fuzz.oracle.steering import Steering

INPLACE_MODULES = ("nn/modules/activation.py", "nn/modules/dropout.py")


class Found(BaseException):
    """The watch has seen enough."""


@dataclass
class Watched:
    """A saved tensor: an alias that shares its version counter, its version when saved, and who moved it since.

    `y.data = …` gives the saved tensor other memory: backward sees the new one, and no alias of the old one shows it.
    """

    tensor: torch.Tensor
    alias: torch.Tensor
    value: torch.Tensor
    saved_version: int
    version: int
    writers: set[int] = field(default_factory=set)
    seen: torch.Tensor | None = None
    """The content at the last look, where content is watched."""


def writers_of_stale_saves(
    code: CodeType, text: str, steering: Steering, *, unseen: bool = False
) -> frozenset[int]:
    """The lines that wrote what a pass still needed; `unseen`: judged by content, for writes that move no counter."""
    watch = _SaveWatch(code.co_filename, text, unseen)
    hooks = torch.autograd.graph.saved_tensors_hooks(watch.pack, watch.unpack)
    with watched_passes(code.co_filename, lambda *_: None, watch.end_of_pass):
        sys.settrace(watch.trace)
        try:
            run(code, steering, hooks)
        except Found:
            pass
        finally:
            sys.settrace(None)
    return frozenset(watch.causes)


def earlier_passes(code: CodeType, text: str, steering: Steering) -> tuple[frozenset[int], frozenset[int]]:
    """The lines of the failing pass and of those that freed what it needs, and the lines that carried it over.

    Carried over: made in a graph that is gone, or made of such a thing.
    """
    freed: list[tuple[int, set[Node]]] = []
    kept_alive: list[Any] = []
    last: list[tuple[Any, int]] = []

    def before(roots: Any, keeps_graph: bool, line: int) -> None:
        nodes = nodes_behind(roots)
        kept_alive.append(nodes)
        last[:] = [(nodes, line)]
        if not keeps_graph:
            freed.append((line, set(nodes)))

    with torch.autograd.set_detect_anomaly(True, check_nan=False), watched_passes(code.co_filename, before):
        run(code, steering)
    if not last:
        return frozenset(), frozenset()
    nodes, line = last[0]
    if freed and freed[-1][0] == line and len(freed) > 1 and freed[-1][1] == set(nodes):
        freed.pop()
    lines = {line, *(freeing for freeing, theirs in freed if theirs & set(nodes))}
    shared = set(nodes) & set().union(*(theirs for _, theirs in freed)) if freed else set()
    entering = {
        node for node in nodes if node not in shared and any(old in shared for old, _ in node.next_functions)
    }
    carried = {made for node in shared | entering for made in _made_at(node, code.co_filename)}
    return frozenset(lines), frozenset(carried | _stores_of_names_bound_at(text, carried))


def writers_behind_broken_views(code: CodeType, steering: Steering) -> frozenset[int]:
    """The lines after which one of several views could no longer be used."""
    watch = _ViewWatch(code.co_filename)
    sys.settrace(watch.trace)
    try:
        run(code, steering)
    finally:
        sys.settrace(None)
    return frozenset(watch.causes)


class _LineWatch:
    """Follows the program line by line; `look` is called with the line that has just run."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.line = 0

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != self.path:
            self.enter_foreign(frame)
            return None
        self.look(self.line, frame)
        self.line = frame.f_lineno
        return self.trace_program

    def trace_program(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.look(self.line, frame)
        self.line = frame.f_lineno
        if event == "return" and frame.f_back is not None and frame.f_back.f_code.co_filename == self.path:
            self.line = frame.f_back.f_lineno
        return self.trace_program

    def look(self, line: int, frame: FrameType) -> None:
        raise AssertionError("each watch looks in its own way")

    def enter_foreign(self, frame: FrameType) -> None:
        """A function outside the program was called."""


class _SaveWatch(_LineWatch):
    def __init__(self, path: str, text: str, unseen: bool) -> None:
        super().__init__(path)
        self.lines = text.splitlines()
        self.unseen = unseen
        self.saves: list[Watched] = []
        self.causes: set[int] = set()
        self._inplace_calls: dict[int, set[str]] = {}

    def pack(self, tensor: torch.Tensor) -> Watched:
        value = tensor.detach().clone()
        version = tensor._version
        saved = Watched(tensor, tensor.detach(), value, version, version, seen=value if self.unseen else None)
        self.saves.append(saved)
        return saved

    def unpack(self, saved: Watched) -> torch.Tensor:
        self.look(self.line, None)
        if self.unseen or saved.alias._version != saved.saved_version:
            self.causes |= saved.writers
        return saved.value

    def end_of_pass(self) -> None:
        if self.causes and not self.unseen:
            for line in tuple(self.causes):
                self.causes |= self._constructors(line)
            raise Found

    def look(self, line: int, frame: FrameType | None) -> None:
        for saved in self.saves:
            if saved.seen is not None:
                now = saved.tensor.detach()
                if is_elsewhere(now, saved.alias) or not same_values(now, saved.seen):
                    saved.alias, saved.seen = now, now.clone()
                    saved.writers.add(line)
            elif saved.alias._version != saved.version:
                saved.version = saved.alias._version
                saved.writers.add(line)

    def enter_foreign(self, frame: FrameType) -> None:
        if frame.f_code.co_name == "forward" and frame.f_code.co_filename.endswith(INPLACE_MODULES):
            module = frame.f_locals.get("self")
            if getattr(module, "inplace", False):
                self._inplace_calls.setdefault(self.line, set()).add(type(module).__name__)

    def _constructors(self, line: int) -> set[int]:
        """A module that works in place was chosen where it was constructed: that line counts as well."""
        names = self._inplace_calls.get(line, set())
        return {
            number
            for number, content in enumerate(self.lines, 1)
            for name in names
            if re.search(rf"\b{name}\([^()]*inplace=True", content)
        }


class _ViewWatch(_LineWatch):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.causes: set[int] = set()
        self._broken: set[int] = set()

    def look(self, line: int, frame: FrameType) -> None:
        for value in (*frame.f_locals.values(), *frame.f_globals.values()):
            items = value if isinstance(value, list | tuple) else (value,)
            for item in items:
                if isinstance(item, torch.Tensor) and id(item) not in self._broken:
                    try:
                        _ = item.grad_fn
                    except RuntimeError:
                        self._broken.add(id(item))
                        self.causes.add(line)


def _made_at(node: Node, path: str) -> set[int]:
    """The program's lines in the stack that anomaly mode stored with the node."""
    entries = "".join((node.metadata or {}).get("traceback_", ()))
    return {int(line) for line in re.findall(rf'File "{re.escape(path)}", line (\d+)', entries)}


def _stores_of_names_bound_at(text: str, lines: set[int]) -> set[int]:
    """The lines that put a value made on one of `lines` somewhere else: `self.state = h`, `states.append(h)`.

    A function that is called on such a line has the value under the names of its parameters.
    """
    tree = ast.parse(text)
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr)]
    bound = {
        node.id
        for statement in statements
        if statement.lineno in lines
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    called = {
        getattr(node.func, "attr", "") or getattr(node.func, "id", "")
        for statement in statements
        if statement.lineno in lines
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
    }
    given = {
        (statement, argument.arg)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name in called
        for argument in node.args.args
        if argument.arg != "self"
        for statement in ast.walk(node)
    }
    return {
        statement.lineno
        for statement in statements
        for node in ast.walk(statement.value)
        if isinstance(node, ast.Name) and (node.id in bound or (statement, node.id) in given)
    }
