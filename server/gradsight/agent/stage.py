"""The stage of a run: torch prepared, instruments installed, and the program executed between them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from gradsight.agent import fakes, limits, mapping
from gradsight.agent.content import Contents, Gradients, watching_lines
from gradsight.agent.faults import Ledger
from gradsight.agent.features import detect
from gradsight.agent.full_instruments import FullInstruments
from gradsight.agent.graph import untracked
from gradsight.agent.instruments import FastInstruments, Instruments
from gradsight.agent.naming import name_leaves
from gradsight.agent.program import UserProgram
from gradsight.agent.sites import place_of

ONE_AT_A_TIME = (
    "this torch does not show what its graph saved: of several overwritten tensors the first is named"
)


class Stage:
    """Everything between a request and its report."""

    def __init__(self, request: dict[str, Any], leave: Callable[[], None]) -> None:
        self.request = request
        self.ledger = Ledger()
        self.governor = limits.RunLimits(int(request.get("steps") or 0), leave)
        self.fake = bool(request.get("fake"))
        self.instruments: Instruments = (
            FastInstruments(self.ledger, self.governor)
            if request.get("fast")
            else FullInstruments(self.ledger, self.governor, self.fake)
        )
        self.contents: Contents | None = None
        self.gradients: Gradients | None = None

    def prepare(self) -> None:
        """Before the program: limits, seeds, and the places where the instruments listen."""
        request = self.request
        if request.get("threads"):
            torch.set_num_threads(int(request["threads"]))
        features = detect(request.get("without") or ())
        limits.refuse_input()
        limits.tame_torch(self.ledger)
        mapping.prepare(self.ledger, bool(request.get("map_cuda")) or self.fake)
        self.instruments.backwards.wants_graph = bool(request.get("graph"))
        self.instruments.install(features)
        if request.get("touches") and isinstance(self.instruments, FullInstruments):
            self.instruments.note_touches()
        self._choose_hooks(features.saved_data)
        if request.get("seed") is not None:
            limits.seed_everything(int(request["seed"]))

    def _choose_hooks(self, shows_saved_data: bool) -> None:
        """Pack hooks are for the deep look, and for a torch whose graph does not show what it saved."""
        request = self.request
        if request.get("gradients_to") or request.get("gradients_from"):
            self.gradients = Gradients()
            self.instruments.backwards.after.append(self._note_gradients)
        deep = bool(request.get("deep"))
        if not deep and shows_saved_data:
            return
        if not shows_saved_data:
            self.ledger.note(ONE_AT_A_TIME)
        watched = request.get("watch")
        self.contents = Contents(
            self.instruments.log,
            self.ledger,
            self.instruments.backwards,
            checks=deep and not self.fake,
            clones=bool(request.get("clones")),
            watched=-1 if watched is None else int(watched),
            reports_writes=not request.get("fast"),
        )

    def _note_gradients(self) -> None:
        instruments = self.instruments
        if (
            not isinstance(instruments, FullInstruments)
            or self.gradients is None
            or not instruments.training.reaches
        ):
            return
        with untracked():
            name_leaves(instruments.shadow)
            reached = instruments.shadow.leaves_in(instruments.training.reaches[-1].reached)
            named = [
                (leaf.name or f"leaf{leaf.bit}", tensor)
                for leaf in reached
                if (tensor := leaf.tensor()) is not None
            ]
            self.gradients.note(named)

    def run(self, program: UserProgram) -> BaseException | None:
        """Executes the program; the error that ended it, if one did."""
        error: BaseException | None = None
        try:
            with self._around():
                try:
                    program.execute(self.instruments.compile)
                except BaseException as raised:
                    error = raised
        except BaseException as raised:
            error = error or raised
        return error

    @contextlib.contextmanager
    def _around(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            if self.fake and isinstance(self.instruments, FullInstruments):
                stack.enter_context(fakes.imagined(self.instruments))
            stack.enter_context(self.instruments.running())
            if self.contents is not None:
                stack.enter_context(self.contents.installed())
                if self.contents.watched >= 0:
                    stack.enter_context(watching_lines(self.contents))
            yield

    def comparison(self) -> dict[str, Any]:
        """What the runs of a deep probe tell each other."""
        extra: dict[str, Any] = {}
        if self.gradients is not None:
            with untracked():
                if self.request.get("gradients_to"):
                    self.gradients.save(str(self.request["gradients_to"]))
                else:
                    extra["comparison"] = self.gradients.compare(str(self.request["gradients_from"]))
        watch = self.contents.watch if self.contents is not None else None
        if watch is not None and watch.changed_at:
            extra["changed_at"] = place_of(watch.changed_at[0]).as_json()
        return extra
