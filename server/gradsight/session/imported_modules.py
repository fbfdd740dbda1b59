"""What is known of the modules that open documents import: one knowledge for a project, used by one analysis at a time.

*Taken*: an analysis has it to itself.  An analysis that gives way to others *lends* it, unless a module is just being executed:
that one is half made.  Whoever finds it taken, or lent and outdated, begins a new one and stays with it.
It lives as long as a document that uses it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gradsight.model.report import Report
from gradsight.model.settings import Settings
from gradsight.session.files import Files

if TYPE_CHECKING:
    from gradsight.analysis import Finder
    from gradsight.interp.paths.shared_modules import SharedModules

Project = tuple[str, str, str]
A_MOMENT = 0.03
"""Seconds for which it is worth waiting until somebody else has done with it."""


class Knowledge:
    """What is known of the modules of one project."""

    def __init__(self, project: Project, modules: SharedModules, age: int) -> None:
        self.project = project
        self.modules = modules
        self.age = age
        """So many changes of files it has heard of."""
        self.is_lent = False
        self._taken = threading.Lock()

    def take(self, seconds: float = 0.0) -> bool:
        """Have it for oneself, if it can be had within a time."""
        return self._taken.acquire(timeout=seconds) if seconds else self._taken.acquire(blocking=False)

    def give_back(self) -> None:
        self._taken.release()

    def lending(self, stop: Callable[[], bool]) -> Callable[[], bool]:
        """The question whether to stop, asked while others may use what is known."""

        def ask() -> bool:
            if self.modules.running:
                return stop()
            aside = self.modules.set_aside()
            was_lent, self.is_lent = self.is_lent, True
            self.give_back()
            try:
                return stop()
            finally:
                self._taken.acquire()
                self.is_lent = was_lent
                self.modules.resume(aside)

        return ask


class ImportedModules:
    """What is known, by project."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._known: weakref.WeakSet[Knowledge] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._age = 0

    def outdate(self) -> None:
        """Files came or went, or changed on disk: an import may lead elsewhere now."""
        self._age += 1

    def are_same_to(self, report: Report, age: int) -> bool:
        """Whether imports lead where they led at that age, and all that a report has used there is as it was."""
        if age != self._age:
            return False
        told = report.used()
        if {one.path for one in told} != set(report.depends_on):
            return False
        from gradsight.interp.used_names import Outlines

        # Of its own: it is asked by whoever does not wait for what is known of modules.
        outlines = Outlines()
        for used in told:
            now = outlines.now(used, self._files.source_at(used.path))
            if now is None or now.starts != used.starts:
                return False
        return True

    def project_of(self, path: str, settings: Settings) -> Project:
        root = self._files.root_of(path) if os.path.isabs(path) else ""
        return root, settings.models, settings.facts

    @contextmanager
    def taken(
        self, path: str, settings: Settings, finder: Finder | None, last: Knowledge | None
    ) -> Iterator[Knowledge]:
        """What is known for a document, best that which it used last."""
        project = self.project_of(path, settings)
        known = self._take_one(project, last) or self._begin(project)
        try:
            self._renew(known, finder)
            yield known
        finally:
            known.give_back()

    @contextmanager
    def taken_at_once(
        self, path: str, settings: Settings, finder: Finder | None, last: Knowledge
    ) -> Iterator[Knowledge | None]:
        """That which a document used last; None where it is not to be had just now."""
        if last.project != self.project_of(path, settings) or not last.take():
            yield None
            return
        try:
            if self._is_usable(last):
                self._renew(last, finder)
                yield last
            else:
                yield None
        finally:
            last.give_back()

    def _take_one(self, project: Project, last: Knowledge | None) -> Knowledge | None:
        with self._lock:
            others = [known for known in self._known if known is not last and known.project == project]
        if last is not None and last.project == project and last.take(A_MOMENT):
            if self._is_usable(last):
                return last
            last.give_back()
        for known in others:
            if known.take():
                if self._is_usable(known):
                    return known
                known.give_back()
        return None

    def _begin(self, project: Project) -> Knowledge:
        from gradsight.analysis import no_modules

        known = Knowledge(project, no_modules(), self._age)
        known.take()
        with self._lock:
            self._known.add(known)
        return known

    def _is_usable(self, known: Knowledge) -> bool:
        """What an analysis that waits goes on with must not be forgotten under its hands."""
        if not known.is_lent:
            return True
        shown = self._files.open_sources
        return known.age == self._age and not any(
            known.modules.is_outdated(source) for source in shown.values()
        )

    def _renew(self, known: Knowledge, finder: Finder | None) -> None:
        """Forget what rests on texts that have changed since."""
        for source in self._files.open_sources.values():
            known.modules.renew(source)
        age = self._age
        if known.age != age:
            known.age = age
            known.modules.check(finder)
