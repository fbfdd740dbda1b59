"""Custom functions: their nodes get a name and a time, inputs changed without `mark_dirty` and lost gradients are seen."""

from __future__ import annotations

import ast
import functools
from typing import Any

import torch

from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.numbering import IS_NATIVE, give_numbers, next_number
from gradsight.agent.oplog import Operation, OpLog
from gradsight.agent.patches import Patches
from gradsight.agent.recorder import Situation
from gradsight.agent.sites import SourceRange, Stack, capture, is_user_file, place_of, text_of, tree_of


class ApplyWrapper:
    """Stands around `torch.autograd.Function.apply`."""

    def __init__(self, log: OpLog, ledger: Ledger, situation: Situation, judges: bool) -> None:
        self.log = log
        self.ledger = ledger
        self.situation = situation
        self.judges = judges
        self._dirty: list[set[int]] = []
        self._wrapped: set[type] = set()

    def install(self, patches: Patches) -> None:
        """The node of a custom function exists before its forward runs, and saves after it: both times are noted."""
        function: Any = torch.autograd.Function
        # A class method, of Python or (from torch 2.15 on) of C: both bind to the class that is asked for it.
        method = vars(function)["apply"]
        mark = torch.autograd.function.FunctionCtx.mark_dirty
        watch = self

        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            applied = method.__get__(None, cls)
            return watch._apply(applied, cls, args, kwargs) if patches.active else applied(*args, **kwargs)

        def mark_dirty(self: Any, *args: Any) -> None:
            if watch._dirty:
                watch._dirty[-1].update(id(tensor) for tensor in args)
            mark(self, *args)

        patches.put(function, "apply", classmethod(apply))
        patches.put(torch.autograd.function.FunctionCtx, "mark_dirty", mark_dirty)

    def _apply(self, original: Any, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        situation = self.situation
        number = next_number()
        stack = capture(3)
        if self.judges:
            self._watch_backward(cls)
        before = [(item, item._version) for item in args if _has_gradient(item)] if self.judges else []
        since = self.log.clock
        is_checkpoint = cls.__name__ == "CheckpointFunction"
        outer = situation.checkpoint
        if is_checkpoint:
            situation.checkpoint = stack
        else:
            situation.custom_functions += 1
        self._dirty.append(set())
        try:
            result = original(*args, **kwargs)
        finally:
            dirty = self._dirty.pop()
            if is_checkpoint:
                situation.checkpoint = outer
            else:
                situation.custom_functions -= 1
        made = Operation(self.log.clock, cls.__name__, stack)
        if IS_NATIVE:
            self.log.track().claim(number + 1, made)
        elif give_numbers(result):
            self.log.track().claim(next_number(), made)
        for tensor, version in before:
            if tensor._version != version and id(tensor) not in dirty:
                self._report_dirty(cls, tensor, since, stack)
        return result

    @quietly
    def _report_dirty(self, cls: Any, tensor: torch.Tensor, since: int, stack: Stack) -> None:
        for write in self.log.writes_to(tensor) or ():
            if write.clock > since and write.stack:
                place = place_of(write.stack[0])
                message = (
                    f"`{text_of(place)}` changes an input of `{cls.__name__}` that `mark_dirty` does not name: "
                    "its gradient stays that of the old value"
                )
                steps = step_at("call", "the function is applied here", stack)
                self.ledger.add(
                    Fault("dirty-not-marked", message, place, steps, "warning", {"function": cls.__name__})
                )
                return

    @quietly
    def _watch_backward(self, cls: Any) -> None:
        """A backward that returns nothing cuts the path without a word."""
        if cls in self._wrapped:
            return
        self._wrapped.add(cls)
        own = cls.__dict__.get("backward")
        code = getattr(getattr(own, "__func__", own), "__code__", None)
        if not isinstance(own, staticmethod) or code is None or not is_user_file(code.co_filename):
            return
        plain = own.__func__
        watch = self

        @functools.wraps(plain)
        def backward(ctx: Any, *gradients: Any) -> Any:
            result = plain(ctx, *gradients)
            parts = result if isinstance(result, tuple) else (result,)
            if all(part is None for part in parts) and any(getattr(ctx, "needs_input_grad", ())):
                watch._report_lost(cls, code)
            return result

        cls.backward = staticmethod(backward)

    @quietly
    def _report_lost(self, cls: Any, code: Any) -> None:
        place = last_statement(code)
        if place is not None:
            message = f"the backward of `{cls.__name__}` returns nothing: no gradient reaches its inputs"
            self.ledger.add(
                Fault("gradient-edited", message, place, (), "warning", {"function": cls.__name__})
            )


def _has_gradient(item: Any) -> bool:
    return isinstance(item, torch.Tensor) and item.requires_grad and not item.is_inference()


def last_statement(code: Any) -> SourceRange | None:
    """The last statement of a function, where its result should be returned."""
    tree = tree_of(code.co_filename)
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name != code.co_name:
            continue
        if min([node.lineno, *(item.lineno for item in node.decorator_list)]) != code.co_firstlineno:
            continue
        returns = [item for item in ast.walk(node) if isinstance(item, ast.Return)]
        target: ast.stmt = returns[-1] if returns else node.body[-1]
        end = target.end_col_offset or target.col_offset + 1
        return SourceRange(
            code.co_filename,
            target.lineno,
            target.col_offset + 1,
            target.end_lineno or target.lineno,
            end + 1,
            code.co_name,
        )
    return None
