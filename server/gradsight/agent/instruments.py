"""What every level of attention shares: the backward, the optimizers, the threads, and the blame for errors.

`FastInstruments` keeps blame only.  The full set is in `gradsight.agent.full_instruments`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import CodeType
from typing import Any

import torch

from gradsight.agent.backwards import Backwards
from gradsight.agent.blame import Blame
from gradsight.agent.custom import ApplyWrapper
from gradsight.agent.fastlog import FastRecorder
from gradsight.agent.faults import Ledger
from gradsight.agent.features import Features
from gradsight.agent.gradwatch import GradWatch
from gradsight.agent.graph import no_dispatch_mode, untracked
from gradsight.agent.limits import RunLimits
from gradsight.agent.mode_stack import OwnPause
from gradsight.agent.modules import ModuleNotes
from gradsight.agent.oplog import OpLog
from gradsight.agent.patches import Patches
from gradsight.agent.recorder import Situation
from gradsight.agent.sites import Stack, capture


class Pause:
    """Switches all modes off while a library step runs: its writes are noted as a whole, before and after.

    A step that raises leaves the pause on; the next step or backward ends it.
    """

    def __init__(self) -> None:
        self._guards: list[Any] = []

    def begin(self) -> None:
        """No mode listens from here on."""
        for guard in (torch._C.DisableTorchFunction(), no_dispatch_mode()):
            guard.__enter__()
            self._guards.append(guard)

    def end(self) -> None:
        """The modes listen again."""
        while self._guards:
            self._guards.pop().__exit__(None, None, None)


class Instruments:
    """The places in torch that are listened at, whatever is done with what is heard."""

    backwards: Backwards
    blame: Blame

    def __init__(self, ledger: Ledger, governor: RunLimits, whole_calls: bool) -> None:
        self.ledger = ledger
        self.governor = governor
        self.log = OpLog(whole_calls)
        self.situation = Situation()
        self.modules = ModuleNotes(self.log, ledger)
        self.may_pause = True
        self.patches = Patches()
        self._pause: Pause | OwnPause = Pause()

    def install(self, features: Features) -> None:
        """Takes the places."""
        self.backwards.install(features.engine_function, self.patches)
        self.backwards.pause_ends = self._pause.end
        self.backwards.after.append(self.governor.count_backward)
        self._listen_to_optimizers()
        self._follow_threads()
        self.modules.install(self.patches)

    def uninstall(self) -> None:
        """Gives the places back."""
        self._pause.end()
        self.patches.undo()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The modes are on inside this block, in the running thread."""
        with contextlib.ExitStack() as stack:
            for mode in self.modes():
                stack.enter_context(mode)
            yield

    def modes(self) -> tuple[Any, ...]:
        """The modes to enter, outermost first."""
        return ()

    def compile(self, source: Any, filename: str) -> CodeType:
        """The code of one part of the user's program."""
        return compile(source, filename, "exec", dont_inherit=True)

    def finish(self) -> None:
        """Judgements that need the whole run."""

    def parameters(self) -> list[dict[str, Any]]:
        """The table of leaves with the state of their gradient."""
        return []

    def facts(self) -> list[dict[str, Any]]:
        """What was seen per line."""
        return []

    def books(self) -> dict[str, Any]:
        """What else a verdict on a prediction can rest on."""
        return {}

    def visited(self) -> dict[str, list[int]]:
        """The lines that ran, by file."""
        return {}

    def step_begins(self, optimizer: Any, stack: Stack, has_closure: bool, is_library: bool) -> None:
        """`optimizer.step()` is about to run; a library step writes its parameters as a whole."""

    def step_ends(self, optimizer: Any, stack: Stack) -> None:
        """`optimizer.step()` came through."""

    def optimizer_made(self, optimizer: Any, stack: Stack) -> None:
        """An optimizer got parameters."""

    def _follow_threads(self) -> None:
        """Modes belong to a thread: a thread of the user enters them too."""
        original = threading.Thread.run
        instruments = self

        def run(self: threading.Thread) -> None:
            if self.name.startswith("gradsight-") or not instruments.patches.active:
                original(self)
                return
            with instruments.running():
                original(self)

        self.patches.put(threading.Thread, "run", run)

    def _listen_to_optimizers(self) -> None:
        from torch.optim import optimizer as module

        self.patches.at_end(module.register_optimizer_step_pre_hook(self._before_step).remove)
        self.patches.at_end(module.register_optimizer_step_post_hook(self._after_step).remove)
        original = module.Optimizer.add_param_group
        instruments = self

        def add_param_group(self: Any, group: Any) -> None:
            try:
                original(self, group)
            except Exception as error:
                if instruments.patches.active:
                    instruments.backwards.on_error(error)
                raise
            if not instruments.patches.active:
                return
            instruments.governor.has_optimizer = True
            with untracked():
                instruments.optimizer_made(self, capture(2))

        self.patches.put(module.Optimizer, "add_param_group", add_param_group)

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        is_library = type(optimizer).__module__.startswith("torch.") and closure is None
        stack = capture(2)
        self._pause.end()
        with untracked():
            self.step_begins(optimizer, stack, closure is not None, is_library)
        self.situation.library_step = 1 if is_library else 0
        if is_library and self.may_pause:
            self._pause.begin()

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._pause.end()
        self.situation.library_step = 0
        stack = capture(2)
        with untracked():
            self.step_ends(optimizer, stack)
        self.governor.count_step()


class FastInstruments(Instruments):
    """Blame for errors, at the lowest cost."""

    def __init__(self, ledger: Ledger, governor: RunLimits) -> None:
        super().__init__(ledger, governor, whole_calls=True)
        grads = GradWatch(self.log, ledger)
        self.recorder = FastRecorder(self.log, self.situation, grads, self.modules.builder)
        self.backwards = Backwards(self.log, ledger, self.situation, None, None)
        self.backwards.around = self.recorder.again
        self.blame = Blame(self.log, None, None, grads, self.backwards, self.modules)
        self._custom = ApplyWrapper(self.log, ledger, self.situation, judges=False)

    def install(self, features: Features) -> None:
        super().install(features)
        self._custom.install(self.patches)

    def modes(self) -> tuple[Any, ...]:
        return (self.recorder,)

    def step_begins(self, optimizer: Any, stack: Stack, has_closure: bool, is_library: bool) -> None:
        if is_library:
            self.recorder.before_step(optimizer)

    def step_ends(self, optimizer: Any, stack: Stack) -> None:
        self.recorder.after_step(optimizer, stack)
