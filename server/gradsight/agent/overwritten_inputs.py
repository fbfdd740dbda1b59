"""Forward hooks that keep the input of a layer which works in place: what they keep is its output already."""

from __future__ import annotations

import ast
import functools
from typing import Any

import torch

from gradsight.agent.faults import Fault, FaultStep, Ledger, quietly
from gradsight.agent.graph import untracked
from gradsight.agent.modules import ModuleNotes
from gradsight.agent.patches import Patches
from gradsight.agent.sites import FrameKey, Stack, names_read, place_of, statement_of, text_of


class OverwrittenInputs:
    """Stands around forward hooks, and hears what they store."""

    def __init__(self, ledger: Ledger, modules: ModuleNotes) -> None:
        self.ledger = ledger
        self.modules = modules
        self._running: list[tuple[Any, torch.nn.Module, Any]] = []

    def install(self, patches: Patches) -> None:
        """Every hook that is registered from now on is known while it runs."""
        module: Any = torch.nn.Module
        original = module.register_forward_hook
        watch = self

        def register_forward_hook(self: Any, hook: Any, *args: Any, **kwargs: Any) -> Any:
            @functools.wraps(hook)
            def running(module: Any, given: Any, *more: Any, **named: Any) -> Any:
                watch._running.append((hook, module, given))
                try:
                    return hook(module, given, *more, **named)
                finally:
                    watch._running.pop()

            return original(self, running, *args, **kwargs)

        patches.put(module, "register_forward_hook", register_forward_hook)

    @quietly
    def stored(self, value: Any, stack: Stack) -> None:
        """A statement of the user keeps a tensor."""
        if not self._running or not stack or not isinstance(value, torch.Tensor):
            return
        hook, module, given = self._running[-1]
        code = getattr(hook, "__code__", None)
        if code is None or stack[0].code is not code or not getattr(module, "inplace", False):
            return
        names = code.co_varnames[: code.co_argcount]
        offset = 2 if names[:1] == ("self",) else 1
        statement = statement_of(stack[0])
        if len(names) <= offset or names[offset] not in _read_in(statement):
            return
        caller = _calling(stack, code)
        with untracked():
            is_given = any(value is each for each in given if isinstance(each, torch.Tensor))
        if not is_given or caller is None:
            return
        place = place_of(caller)
        built = self.modules.built(module)
        kept = place_of(stack[0])
        message = f"`{text_of(place, limit=50)}` works in place, and the hook on line {kept.row} keeps its input: that is the output already"
        steps = (
            FaultStep("read", "kept here, after the layer has overwritten it", kept),
            *((FaultStep("made", "the layer that works in place", place_of(built[0])),) if built else ()),
        )
        self.ledger.add(Fault("alias-read-after-write", message, place, steps, "warning", {}))


def _read_in(statement: ast.stmt | None) -> frozenset[str]:
    return frozenset(names_read(statement)) if statement is not None else frozenset()


def _calling(stack: Stack, hook: Any) -> FrameKey | None:
    """The line that calls the layer: the first one outside of the hook."""
    return next((key for key in stack if key.code is not hook), None)
