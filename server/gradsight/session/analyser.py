"""The one seam between a session and the engine: an analyser lives as long as its document and may remember.

`stop` is asked now and then while an analysis runs; once it says yes the answer is not wanted any more.
The engine is imported when the first analyser works, so that a server answers before its engine is loaded.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from gradsight.model.card import Card
from gradsight.model.report import Report
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session.files import Files
from gradsight.session.imported_modules import ImportedModules, Knowledge

if TYPE_CHECKING:
    from gradsight.analysis import Analyser as Engine
    from gradsight.analysis import Finder

Stop = Callable[[], bool]
A_MOMENT = 0.012
"""Seconds of work for which messages may wait."""


class DocumentAnalyser(Protocol):
    """Says everything about one document, again and again; None if it was stopped."""

    def analyze(
        self, source: Source, settings: Settings, finder: Finder | None, stop: Stop
    ) -> Report | None: ...

    def analyze_at_once(self, source: Source, settings: Settings, finder: Finder | None) -> Report | None:
        """The report, if it is a matter of a moment; None where it is not, and nothing is lost by having tried."""
        ...

    def forget(self) -> None:
        """What is remembered does not hold any more: a file that the document imports has changed."""
        ...

    def cards(
        self, source: Source, settings: Settings, finder: Finder | None, first_line: int, last_line: int
    ) -> Sequence[Card]:
        """What is known about tensor names on these lines of a text."""
        ...


class Incremental:
    """Analyses what an edit touched, and what rests on it.

    The engine is used by one thread at a time.  Where the last analysis took but a moment the next one probably does too:
    `analyze_at_once` then does it where it is asked for, which costs less than to hand it to another thread.
    """

    def __init__(self, imported: ImportedModules | None = None) -> None:
        self._imported = imported if imported is not None else ImportedModules(Files())
        self._known: Knowledge | None = None
        self._engine: Engine | None = None
        self._in_use = threading.Lock()
        self._last_took = math.inf
        self._is_outdated = False
        self._last: tuple[str, Settings, int, Report] | None = None
        """The last report: on which text, under which settings, and after how many changes of where imports lead."""

    def analyze(self, source: Source, settings: Settings, finder: Finder | None, stop: Stop) -> Report | None:
        if stop():
            return None
        known_report = self._still_holding(source, settings)
        if known_report is not None:
            return known_report
        with (
            self._in_use,
            self._imported.taken(source.path, settings, finder, self._known) as known,
        ):
            engine, age = self._engine_on(known), known.age
            started = time.thread_time()
            report = engine.analyze_unless(known.lending(stop), source, settings, finder)
            self._last_took = time.thread_time() - started
            self._last = (source.text, settings, age, report) if report is not None else None
            return report

    def _still_holding(self, source: Source, settings: Settings) -> Report | None:
        """The last report, if only files that the document imports have changed, and nothing that it used of them."""
        if not self._is_outdated or self._last is None:
            return None
        text, under, age, report = self._last
        if text != source.text or under != settings or not self._imported.are_same_to(report, age):
            return None
        return report

    def _engine_on(self, known: Knowledge) -> Engine:
        from gradsight.analysis import Analyser as Engine

        engine = self._engine
        if engine is None or known is not self._known:
            self._known = known
            engine = self._engine = Engine(known.modules)
        elif self._is_outdated:
            engine.forget_results()
        self._is_outdated = False
        return engine

    def analyze_at_once(self, source: Source, settings: Settings, finder: Finder | None) -> Report | None:
        if (
            self._known is None
            or self._is_outdated
            or self._last_took > A_MOMENT
            or not self._in_use.acquire(blocking=False)
        ):
            return None
        started = time.thread_time()
        try:
            with self._imported.taken_at_once(source.path, settings, finder, self._known) as known:
                if known is None:
                    return None
                engine, age = self._engine_on(known), known.age
                report = engine.analyze_unless(
                    lambda: time.thread_time() - started > A_MOMENT, source, settings, finder
                )
                self._last = (source.text, settings, age, report) if report is not None else None
                return report
        finally:
            self._last_took = time.thread_time() - started
            self._in_use.release()

    def forget(self) -> None:
        self._is_outdated = True
        self._last_took = math.inf

    def cards(
        self, source: Source, settings: Settings, finder: Finder | None, first_line: int, last_line: int
    ) -> Sequence[Card]:
        with (
            self._in_use,
            self._imported.taken(source.path, settings, finder, self._known) as known,
        ):
            return self._engine_on(known).cards(source, first_line, last_line, settings, finder)


def load_engine() -> None:
    """Import the engine and its table now, so that the first document need not wait for them."""
    from gradsight.analysis import analyze

    analyze(
        Source(
            "warm.py", "import torch\ny = torch.exp(torch.ones(2, requires_grad=True))\ny.sum().backward()\n"
        )
    )


def load_repairs() -> None:
    """Import what the first repair, and the first hover over a tensor, would otherwise wait for."""
    import gradsight.interp.paths.hover_facts  # noqa: F401
    from gradsight.fixing import warm_up

    warm_up()
