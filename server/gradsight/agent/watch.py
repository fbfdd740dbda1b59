"""The agent inside the user's own process: it listens from `start` to `stop`, and errors of autograd are told on.

Nothing of the program is changed: no seeds, no limits, no switched-off compiler.  `stop` puts every attribute of torch and
Python back.  Only one watch listens at a time.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import torch

from gradsight.agent.backwards import attached
from gradsight.agent.faults import Fault, Ledger, quietly
from gradsight.agent.features import detect
from gradsight.agent.graph import untracked
from gradsight.agent.graph_survivors import GraphSurvivors
from gradsight.agent.instruments import FastInstruments
from gradsight.agent.light_cuts import LightCuts, LostPath
from gradsight.agent.limits import RunLimits
from gradsight.agent.missed_leaves import MissedLeaves, TensorRef
from gradsight.agent.mode_stack import OwnPause, enter_below, leave
from gradsight.agent.naming import CalledModules
from gradsight.agent.parameter_books import OptimizerBook, ParameterBooks
from gradsight.agent.sites import Stack

Told = Callable[[BaseException, Fault], None]
OLDEST_TORCH = (2, 0)


class WatchInstruments(FastInstruments):
    """Blame for errors, and the books of the optimizers' parameters."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger, RunLimits(0, lambda: None))
        self.books_of_parameters = ParameterBooks()
        cuts = self.recorder.cuts = self.blame.cuts = LightCuts()
        self._pause = OwnPause(self.recorder)
        self.missed = MissedLeaves(cuts, ledger)
        self.survivors = GraphSurvivors(ledger)
        self.called = CalledModules()
        self.backwards.on_roots = self.missed.backward
        cuts.on_loss = self._lost
        self.after_each_step: Callable[[], None] = lambda: None
        self.look_closely(0)

    def look_closely(self, step: int) -> None:
        """At the first steps and then ever more rarely it is followed what becomes of the tensors of a step."""
        is_on = step & (step - 1) == 0
        self.missed.begin_step(is_on)
        self.survivors.step = step
        self.recorder.on_made = self._made if is_on else None
        if is_on:
            self.survivors.look()

    @quietly
    def _lost(self, lost: LostPath, args: Any) -> None:
        if not self.survivors.step:
            self.called.note()
        self.missed.lost(lost, args)

    @quietly
    def _made(self, func: Any, args: Any, kwargs: Any, result: Any, number: int, stack: Stack) -> None:
        self.missed.made((*args, *kwargs.values()) if kwargs else args, number)
        if not self.survivors.step:
            self.called.note()
        self.survivors.made(getattr(func, "__name__", ""), result, stack)

    def step_begins(self, optimizer: Any, stack: Stack, has_closure: bool, is_library: bool) -> None:
        # What a step writes is noted where it is known what was saved: between watched steps it is not.
        if self.recorder.is_listening:
            super().step_begins(optimizer, stack, has_closure, is_library)
            self.books_of_parameters.before_step(optimizer, stack, has_closure, self.called.names)

    def step_ends(self, optimizer: Any, stack: Stack) -> None:
        if self.recorder.is_listening:
            super().step_ends(optimizer, stack)
            self.books_of_parameters.after_step(optimizer)
        self.after_each_step()


class Watch:
    """One period of listening in this process."""

    def __init__(self, tell: Told, every: int = 1) -> None:
        self.every = every
        self.ledger = Ledger()
        self.instruments = WatchInstruments(self.ledger)
        self.errors: list[Fault] = []
        self.is_on = False
        self._tell = tell
        self._steps = 0
        self._watched = 0
        self._thread = threading.get_ident()

    def start(self) -> None:
        """Listens from here on, in this thread and in every thread that starts later."""
        instruments = self.instruments
        instruments.install(detect())
        instruments.backwards.on_error = self._on_its_way
        instruments.recorder.on_error = self._on_its_way
        instruments.after_each_step = self._stepped
        self._hear_last_words()
        enter_below(instruments.recorder)
        self.is_on = True

    def stop(self) -> None:
        """Listens no more, and leaves nothing behind."""
        if not self.is_on:
            return
        self.is_on = False
        self._switch(False)
        self.instruments.recorder.is_listening = False
        self.instruments.uninstall()

    @property
    def steps(self) -> int:
        """How many optimizer steps there were, watched or not."""
        return self._steps

    @property
    def watched_steps(self) -> int:
        """How many of them were watched."""
        return self._watched

    @property
    def compiles(self) -> bool:
        """Whether the program has compiled a part of itself, which no mode listens to."""
        dynamo = sys.modules.get("torch._dynamo.utils")
        return bool(dynamo is not None and getattr(dynamo, "counters", {}).get("frames"))

    def books(self) -> list[OptimizerBook]:
        """What the watched steps showed of the optimizers' parameters."""
        return self.instruments.books_of_parameters.conclude()

    @quietly
    def _cuts(self, untrained: list[tuple[str, TensorRef]]) -> tuple[list[Fault], set[int]]:
        with untracked():
            return self.instruments.missed.faults(untrained)

    def cuts(self, untrained: list[tuple[str, TensorRef]]) -> tuple[list[Fault], set[int]]:
        """The cuts that explain why these parameters have no gradient, and the ids of those that are explained."""
        return self._cuts(untrained) or ([], set())

    @quietly
    def _kept_graphs(self) -> list[Fault]:
        with untracked():
            return self.instruments.survivors.faults()

    def kept_graphs(self) -> list[Fault]:
        """The lines that keep the graph of every step."""
        return self._kept_graphs() or []

    def explain(self, error: BaseException) -> None:
        """Tells on an error that has come up to its end, once."""
        self._explain(error, self.instruments.blame.explain)

    def _on_its_way(self, error: BaseException) -> None:
        self._explain(error, self.instruments.blame.explain_on_its_way)

    def _explain(self, error: BaseException, blame: Callable[[BaseException], Fault | None]) -> None:
        if getattr(error, "_gradsight_told", False):
            return
        try:
            fault = attached(error) or blame(error)
        except Exception:
            self.ledger.problem(traceback.format_exc())
            return
        if fault is None:
            return
        error.__dict__["_gradsight_told"] = True
        self.errors.append(fault)
        del self.errors[:-64]
        self._tell(error, fault)

    def _stepped(self) -> None:
        self._steps += 1
        if self.instruments.recorder.is_listening:
            self._watched += 1
            self.instruments.look_closely(self._watched)
        if self.every > 1 and threading.get_ident() == self._thread:
            self._switch(self._steps % self.every == 0)

    def _switch(self, on: bool) -> None:
        recorder = self.instruments.recorder
        if on:
            enter_below(recorder)
        else:
            leave(recorder)
        recorder.is_listening = on

    def _hear_last_words(self) -> None:
        """Errors of Python itself (`None` has no `.norm()`) are explained when they end the program or a thread."""
        before, before_in_thread = sys.excepthook, threading.excepthook

        def excepthook(kind: Any, error: Any, trace: Any) -> None:
            if self.is_on and isinstance(error, Exception):
                self.explain(error)
            before(kind, error, trace)

        def thread_excepthook(args: Any) -> None:
            if self.is_on and isinstance(args.exc_value, Exception):
                self.explain(args.exc_value)
            before_in_thread(args)

        self.instruments.patches.put(sys, "excepthook", excepthook)
        self.instruments.patches.put(threading, "excepthook", thread_excepthook)


def refusal() -> str:
    """Why this torch cannot be watched; empty when it can."""
    try:
        release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    except ValueError:
        return ""
    return (
        f"torch {torch.__version__} is too old to be watched (2.0 is the oldest)"
        if release < OLDEST_TORCH
        else ""
    )
