"""Models that were to be copied and were given a second name: `best = model`, `self.target = self.policy`, `copy.copy(model)`.

Second names are noted where a statement gives one; speaking takes three things: the name says that a copy is meant, a step
has changed the model since, and the second name is read after that.
"""

from __future__ import annotations

import ast
import re
import sys
import weakref
from dataclasses import dataclass
from typing import Any

import torch

from gradsight.agent.copy_names import MEANT_AS_COPY
from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.sites import FrameKey, Stack, place_of, statement_of, text_of

SECOND = "__gradsight_second__"
_MOST_NAMES = 256


@dataclass
class _SecondName:
    """One more name for a module."""

    module: weakref.ref[torch.nn.Module]
    name: str
    origin: str
    stack: Stack
    stepped: Stack = ()


class ModelCopies:
    """Notes second names of modules, and speaks when one is read as if it were a copy."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._names: dict[tuple[int, str], _SecondName] = {}

    @quietly
    def bound(self, name: str, module: torch.nn.Module, stack: Stack) -> None:
        """A statement has given a module this name."""
        if not stack or len(self._names) >= _MOST_NAMES:
            return
        self._names = {
            key: each for key, each in self._names.items() if each.name != name or key[0] == id(module)
        }
        origin = second_name_of(statement_of(stack[0]), name)
        if origin:
            key = (id(module), name)
            known = self._names.get(key)
            # The first place where it got the name stays, unless the model has moved since: then this is the one meant.
            if known is None or known.module() is not module or known.stepped:
                self._names[key] = _SecondName(weakref.ref(module), name, origin, stack)

    def stepped(self, optimizer: Any, stack: Stack) -> None:
        """An optimizer has moved parameters."""
        if not self._names:
            return
        moved = {id(each) for group in optimizer.param_groups for each in group["params"]}
        for second in self._names.values():
            module = second.module()
            if not second.stepped and module is not None:
                if any(id(each) in moved for each in module.parameters()):
                    second.stepped = stack

    def read(self, value: Any, name: str) -> Any:
        """Stands around a second name in the user's code; hands the value through."""
        second = self._names.get((id(value), name))
        if second is not None and second.stepped and second.module() is value:
            self._judge(second, sys._getframe(1))
        return value

    @quietly
    def _judge(self, second: _SecondName, frame: Any) -> None:
        if not _is_still_one(second, frame):
            return
        place = place_of(second.stack[0])
        message = (
            f"`{text_of(place)}` makes no copy: every step changes `{second.name}` with `{second.origin}`"
        )
        reader = (FrameKey(frame.f_code, frame.f_lasti),)
        steps = (
            *step_at("written", "this step changes both", second.stepped),
            *step_at("read", f"`{second.name}` is used here", reader),
        )
        self.ledger.add(Fault("model-not-copied", message, place, steps, "warning", {"name": second.name}))


def second_name_of(statement: ast.stmt | None, name: str) -> str:
    """What a statement gives a second name that says it is a copy; empty where it gives none."""
    if not isinstance(statement, ast.Assign):
        return ""
    origin: ast.expr = statement.value
    is_copy = False
    if (
        isinstance(origin, ast.Call)
        and ast.unparse(origin.func) in ("copy.copy", "copy")
        and len(origin.args) == 1
    ):
        origin, is_copy = origin.args[0], True
    if not isinstance(origin, (ast.Name, ast.Attribute)) or name not in map(ast.unparse, statement.targets):
        return ""
    text = ast.unparse(origin)
    last, first = name.rpartition(".")[2], text.rpartition(".")[2]
    if last == first or re.search(MEANT_AS_COPY, first):
        return ""
    return text if is_copy or re.search(MEANT_AS_COPY, last) else ""


def second_names_in(tree: ast.Module) -> frozenset[str]:
    """The names that statements of a file give as second ones."""
    return frozenset(
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for name in map(ast.unparse, node.targets)
        if second_name_of(node, name)
    )


class WatchedReads(ast.NodeTransformer):
    """`best(x)` reads a second name through a function of ours; a question whether there is one is no use of it."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if any(isinstance(operator, (ast.Is, ast.IsNot)) for operator in node.ops):
            return node
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._watched(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        return self._watched(node)

    def _watched(self, node: ast.Name | ast.Attribute) -> ast.AST:
        text = ast.unparse(node) if isinstance(node.ctx, ast.Load) else ""
        if text not in self.names:
            return node
        arguments: list[ast.expr] = [node, ast.Constant(value=text)]
        call = ast.Call(func=ast.Name(id=SECOND, ctx=ast.Load()), args=arguments, keywords=[])
        return ast.copy_location(call, node)


def _is_still_one(second: _SecondName, frame: Any) -> bool:
    """Whether the first name still stands for the module: one that was wrapped or made again has gone its own way."""
    root, *rest = second.origin.split(".")
    for scope in (frame.f_locals, frame.f_globals):
        if root in scope:
            value = scope[root]
            for part in rest:
                value = getattr(value, part, None)
            module = second.module()
            if value is module or not isinstance(value, torch.nn.Module):
                return True
            # A shallow copy is another object with the same parameters.
            shared = {id(each) for each in value.parameters()}
            return module is not None and any(id(each) in shared for each in module.parameters())
    return True
