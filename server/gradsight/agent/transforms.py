"""Functional transforms over a function that never looks at the parameters it is given."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
from typing import Any

import torch

from gradsight.agent.definitions import place_of_expression
from gradsight.agent.faults import Fault, FaultStep, Ledger, quietly, step_at
from gradsight.agent.recorder import Situation
from gradsight.agent.sites import (
    FrameKey,
    SourceRange,
    Stack,
    capture,
    is_user_file,
    place_of,
    text_of,
    tree_of,
)

_TRANSFORMS = ("grad", "grad_and_value", "jacrev", "jacfwd")


class TransformWrappers:
    """Wraps `torch.func` so that the arguments a derivative is taken of are seen to be used, or not."""

    def __init__(self, ledger: Ledger, situation: Situation) -> None:
        self.ledger = ledger
        self.situation = situation

    def install(self) -> None:
        """Replaces the transforms that take a derivative by their first arguments."""
        func: Any = getattr(torch, "func", None)
        if func is None:
            return
        for name in _TRANSFORMS:
            if hasattr(func, name):
                setattr(func, name, self._wrapped(getattr(func, name)))
        if hasattr(func, "vmap"):
            func.vmap = torch.vmap = self._without_hooks(func.vmap)

    def _hooks_off(self) -> Any:
        off = self.situation.hooks_off
        return off() if off is not None else contextlib.nullcontext()

    def _without_hooks(self, original: Any) -> Any:
        """A transform that refuses to run while pack hooks are installed."""
        watch = self

        @functools.wraps(original)
        def transform(*args: Any, **kwargs: Any) -> Any:
            inner = original(*args, **kwargs)

            @functools.wraps(inner)
            def called(*inputs: Any, **options: Any) -> Any:
                with watch._hooks_off():
                    return inner(*inputs, **options)

            return called

        return transform

    def _wrapped(self, original: Any) -> Any:
        watch = self

        @functools.wraps(original)
        def transform(function: Any, argnums: Any = 0, *args: Any, **kwargs: Any) -> Any:
            calls: list[Stack] = []

            @functools.wraps(function)
            def watched(*inputs: Any, **options: Any) -> Any:
                return watch._run(function, argnums, inputs, options, calls)

            inner = original(watched, argnums, *args, **kwargs)

            @functools.wraps(inner)
            def called(*inputs: Any, **options: Any) -> Any:
                calls.append(capture(2))
                with watch._hooks_off():
                    return inner(*inputs, **options)

            return called

        return transform

    def _run(self, function: Any, argnums: Any, inputs: Any, options: Any, calls: list[Stack]) -> Any:
        chosen = argnums if isinstance(argnums, tuple) else (argnums,)
        given = {
            id(tensor) for number in chosen if number < len(inputs) for tensor in _tensors_in(inputs[number])
        }
        if not given:
            return function(*inputs, **options)
        outer = self.situation.unused
        unused = self.situation.unused = set(given)
        try:
            result = function(*inputs, **options)
        finally:
            self.situation.unused = outer
        if unused == given:
            self._report(calls[-1] if calls else (), function)
        return result

    @quietly
    def _report(self, stack: Stack, function: Any) -> None:
        if not stack:
            return
        name = getattr(function, "__name__", "the function")
        place = place_of(stack[0])
        message = f"`{text_of(place)}` differentiates `{name}`, which never uses the parameters it is given"
        steps: tuple[FaultStep, ...] = ()
        own = _call_of_own_module(function)
        if own is not None:
            steps = step_at("call", f"the derivative of `{name}` is taken here", stack)
            place = own
            message = f"`{text_of(place)}` runs with the module's own parameters: `{name}` never uses those it is given"
        self.ledger.add(
            Fault("func-ignores-parameters", message, place, steps, "warning", {"function": name})
        )


def _call_of_own_module(function: Any) -> SourceRange | None:
    """Where a function of the user calls a module that it finds around it; nothing when there are several such calls."""
    code = getattr(function, "__code__", None)
    tree = tree_of(code.co_filename) if code is not None and is_user_file(code.co_filename) else None
    if code is None or tree is None:
        return None
    around = inspect.getclosurevars(function)
    held = {**around.globals, **around.nonlocals}
    modules = {name for name, value in held.items() if isinstance(value, torch.nn.Module)}
    bodies = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.Lambda)) and node.lineno == code.co_firstlineno
    ]
    calls = [
        node
        for body in bodies[:1]
        for node in ast.walk(body)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in modules
    ]
    return place_of_expression(FrameKey(code, 0), calls[0]) if len(calls) == 1 else None


def _tensors_in(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in _tensors_in(item)]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors_in(item)]
    return []
