"""Asks torch what hovers over names claim: a program runs with every tensor name observed, and each observation is held against them.

A name that is read is observed as it is read, a name that is bound right after the statement that binds it.
"""

from __future__ import annotations

import ast
import contextlib
import io
import random
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch

from gradsight.model.card import Card, TensorCard

Place = tuple[int, int]
"""A line and the byte column at which a name begins (for an attribute, ends)."""


@dataclass(frozen=True)
class Observation:
    """What torch says about a tensor at one moment."""

    is_leaf: bool
    requires_grad: bool
    grad_fn: str
    version: int | None
    shape: str


@dataclass
class Observer:
    """Gathers observations by place while a program runs."""

    seen: dict[Place, set[Observation]] = field(default_factory=dict)

    def see(self, value: Any, line: int, column: int) -> Any:
        """Note a value, and hand it on."""
        if isinstance(value, torch.Tensor) and not torch._C._functorch.is_functorch_wrapped_tensor(value):
            with contextlib.suppress(RuntimeError):
                self.seen.setdefault((line, column), set()).add(observe(value))
        return value


def observe(tensor: torch.Tensor) -> Observation:
    """One tensor as it is now."""
    function = tensor.grad_fn
    name = re.sub(r"Backward\d*$", "", function.name().rpartition("::")[2]) if function is not None else ""
    version = None if tensor.is_inference() else int(tensor._version)
    return Observation(tensor.is_leaf, tensor.requires_grad, name, version, str([*tensor.shape]))


class Watched(ast.NodeTransformer):
    """Puts an observation around every name that is read and behind every name that is bound."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._seen(node, node.col_offset) if isinstance(node.ctx, ast.Load) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return self._seen(node, node.end_col_offset or 0, node.end_lineno)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        return node

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        self.generic_visit(node)
        return [node, *self._bound(node.targets)]

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        self.generic_visit(node)
        return [node, *self._bound([node.target])]

    def visit_For(self, node: ast.For) -> ast.stmt:
        self.generic_visit(node)
        node.body[:0] = self._bound([node.target])
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        for index, statement in enumerate(node.body):
            made = self.visit(statement)
            node.body[index] = made if isinstance(made, ast.stmt) else ast.If(ast.Constant(True), made, [])
        parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        node.body[:0] = [
            ast.Expr(self._call(ast.Name(one.arg, ast.Load()), one.lineno, one.col_offset))
            for one in parameters
        ]
        return node

    def _bound(self, targets: Iterable[ast.expr]) -> Iterable[ast.stmt]:
        for target in targets:
            if isinstance(target, ast.Name):
                yield ast.Expr(self._call(ast.Name(target.id, ast.Load()), target.lineno, target.col_offset))
            elif isinstance(target, (ast.Tuple, ast.List)):
                yield from self._bound(target.elts)

    def _seen(self, node: ast.expr, column: int, line: int | None = None) -> ast.expr:
        return self._call(node, line or node.lineno, column)

    def _call(self, value: ast.expr, line: int, column: int) -> ast.Call:
        return ast.Call(
            ast.Name("__see__", ast.Load()), [value, ast.Constant(line), ast.Constant(column)], []
        )


def observations(text: str, path: str) -> dict[Place, set[Observation]]:
    """What torch says about every tensor name of a program, until it ends or raises."""
    observer = Observer()
    _run(text, path, observer.see)
    return observer.seen


def _run(text: str, path: str, see: Any) -> set[int]:
    """Run a program to its end; returns the lines that an error broke off, which did only a part of what they say."""
    tree = ast.fix_missing_locations(Watched().visit(ast.parse(text)))
    return execute(tree, path, {"__see__": see})


def execute(tree: ast.Module, path: str, names: dict[str, Any]) -> set[int]:
    """Run a changed program with some names of ours, from the same state as every other."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    namespace: dict[str, Any] = {"__name__": "__main__", "__file__": path, **names}
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(tree, path, "exec"), namespace)
        except (Exception, SystemExit) as error:
            frames = traceback.walk_tb(error.__traceback__)
            return {line for frame, line in frames if frame.f_code.co_filename == path}
        finally:
            torch.set_grad_enabled(True)
            torch.set_default_dtype(torch.float32)
    return set()


@dataclass
class Memories:
    """The memory behind each name, and the memory that operators of each line kept for backward."""

    named: dict[Place, set[int]] = field(default_factory=dict)
    kept: dict[int, set[int]] = field(default_factory=dict)
    alive: list[Any] = field(default_factory=list)
    """An address means one memory only as long as nothing is freed."""
    ranges: list[tuple[int, int]] = field(default_factory=list)
    """Where each memory begins and ends: what comes back from NumPy can begin inside another one."""

    def address(self, tensor: torch.Tensor) -> set[int]:
        """The memory, and the object itself: `t.data = …` gives a tensor other memory, and it stays what it is."""
        storage = tensor.untyped_storage()
        self.alive += [storage, tensor]
        start = int(storage.data_ptr())
        around = next((low for low, high in self.ranges if low <= start < high), None)
        if around is None:
            self.ranges.append((start, start + max(storage.nbytes(), 1)))
        return {start if around is None else around, -id(tensor)}

    def see(self, value: Any, line: int, column: int) -> Any:
        """Note the memory of a value, and hand it on."""
        if isinstance(value, torch.Tensor) and not torch._C._functorch.is_functorch_wrapped_tensor(value):
            with contextlib.suppress(RuntimeError):
                self.named.setdefault((line, column), set()).update(self.address(value))
        return value


def memories(text: str, path: str) -> Memories:
    """What a program keeps for backward, by the lines of the program that were running and came to their end."""
    noted = Memories()

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == path:
                with contextlib.suppress(RuntimeError):
                    noted.kept.setdefault(frame.f_lineno, set()).update(noted.address(tensor))
            frame = frame.f_back  # type: ignore[assignment]
        return tensor

    def run_noted(thread: threading.Thread) -> None:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            run_thread(thread)

    run_thread = threading.Thread.run
    # Hooks hold for the thread that sets them.
    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        mock.patch.object(threading.Thread, "run", run_noted),
    ):
        broken = _run(text, path, noted.see)
    for line in {line for line, _ in noted.named}:
        noted.kept.setdefault(line, set())
    # A line of a function or a loop may keep something in a call that a program with an error does not come to.
    for line in broken | (_repeated_lines(text) if broken else set()):
        noted.kept.pop(line, None)
    return noted


def _repeated_lines(text: str) -> set[int]:
    """The lines that can run more than once."""
    blocks = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.For, ast.While)
    return {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, blocks)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


@dataclass
class Verdict:
    """How many claims were held against torch, and those that torch denies."""

    claims: int = 0
    lies: list[str] = field(default_factory=list)


def named(cards: Iterable[Card]) -> list[TensorCard]:
    return [card for card in cards if isinstance(card, TensorCard)]


def compare(cards: Iterable[Card], seen: dict[Place, set[Observation]], lines: list[str]) -> Verdict:
    """Hold every claim of every card against every observation of the same name."""
    verdict = Verdict()
    for card in named(cards):
        column = card.span.end_column if "." in card.name else card.span.column
        text = lines[card.span.line - 1] if "." not in card.name else lines[card.span.end_line - 1]
        place = (card.span.line, len(text[:column].encode()))
        for observed in seen.get(place, ()):
            for name in ("is_leaf", "requires_grad", "grad_fn", "version", "shape"):
                claimed, true = getattr(card, name), getattr(observed, name)
                if claimed is None or claimed == "":
                    continue
                verdict.claims += 1
                if claimed != true:
                    verdict.lies.append(f"{card.span.line}: {card.name}.{name} is {true!r}, not {claimed!r}")
    return verdict


def compare_saved(cards: Iterable[Card], noted: Memories, lines: list[str]) -> Verdict:
    """Hold "kept for backward by" against what operators of that line really kept, where the line ran."""
    verdict = Verdict()
    for card in named(cards):
        column = card.span.end_column if "." in card.name else card.span.column
        place = (card.span.line, len(lines[card.span.line - 1][:column].encode()))
        for saved in card.saved:
            if place not in noted.named or saved.line not in noted.kept:
                continue
            verdict.claims += 1
            if not noted.named[place] & noted.kept[saved.line]:
                verdict.lies.append(
                    f"{card.span.line}: {card.name} is not kept by {saved.op} in line {saved.line}"
                )
    return verdict
