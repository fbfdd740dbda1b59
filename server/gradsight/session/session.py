"""A session: documents come, change and go; each change is analysed once it rests, and who is concerned is told.

*Superseded*: a newer edit makes the answer of a running analysis worthless; it is stopped where it can be and its answer
is dropped.  At most one analysis runs for a document, and the next one starts from the newest text.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from gradsight.model.card import Card
from gradsight.model.finding import Finding
from gradsight.model.gravest import gravest
from gradsight.model.relevance import is_about_torch
from gradsight.model.report import Gap, Report
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.ops.cache import has_tables, measured_facts
from gradsight.session.analyser import DocumentAnalyser, Incremental, load_engine, load_repairs
from gradsight.session.documents import Document, Notebook, Open
from gradsight.session.evidence import EvidenceBook
from gradsight.session.files import FILE as CONFIGURATION_FILE
from gradsight.session.files import Files
from gradsight.session.fix_menu import OfferMemory, Workshop
from gradsight.session.gaps import log_gaps
from gradsight.session.housekeeping import Housekeeper
from gradsight.session.imported_modules import ImportedModules
from gradsight.session.options import FolderOptions, Options
from gradsight.session.reading import too_large
from gradsight.session.scanning import Scanner
from gradsight.session.schedule import Urgency, Worker

if TYPE_CHECKING:
    from gradsight.session.prober import Prober
    from gradsight.session.proving import Decided

log = logging.getLogger(__name__)
MOST_SECONDS = 30
"""Seconds of work after which the analysis of a document is left."""
TOOK_TOO_LONG = "the analysis of this file took too long and was left"


@dataclass(slots=True)
class PendingAnalysis:
    """What is under way for one document."""

    timer: asyncio.TimerHandle | None = None
    running: asyncio.Future[Report | None] | None = None
    waiters: list[asyncio.Future[None]] = field(default_factory=list)
    analyses: int = 0


class EditorSession:
    """Everything that is open, and the work that is due."""

    def __init__(self, make_analyser: Callable[[], DocumentAnalyser] | None = None) -> None:
        self.open = Open()
        self.files = Files()
        self.imported = ImportedModules(self.files)
        self.worker = Worker()
        self.housekeeper = Housekeeper()
        self.housekeeper.on_rest = self._prepare_repairs
        self.scanner = Scanner(self)
        self.offers = OfferMemory()
        self.evidence = EvidenceBook()
        self.decided: Decided = {}
        """Programs that have decided about a finding."""
        self.options = FolderOptions()
        self.on_report: Callable[[Document, set[str]], None] = lambda document, elsewhere: None
        self.on_outdated: Callable[[], None] = lambda: None
        self.on_complaint: Callable[[str], None] = log.warning
        self.is_pulled = False
        """The editor asks for findings itself: an edit alone starts nothing."""
        self._make_analyser = make_analyser or (lambda: Incremental(self.imported))
        self._pending: dict[str, PendingAnalysis] = {}
        self._complained: set[str] = set()
        self.analyses = 0
        """How many analyses were started."""

    @cached_property
    def prober(self) -> Prober:
        """Runs probes; nothing of it is loaded before the first one."""
        from gradsight.session.prober import Prober

        return Prober()

    def warm_up(self) -> None:
        """Load the engine in the background."""
        loading = self.worker.submit(Urgency.AWAITED, load_engine)
        loading.add_done_callback(_log_failure)
        loading.add_done_callback(lambda done: self.housekeeper.take_over())

    def _prepare_repairs(self) -> None:
        """Load what repairs need while nothing else is to be done, once something that could need one is open."""
        if not any(is_about_torch(document.source.text) for document in self.open.documents.values()):
            return
        self.housekeeper.on_rest = lambda: None
        self.worker.submit(Urgency.BACKGROUND, load_repairs).add_done_callback(_log_failure)

    # What is open.

    def open_document(self, key: str, path: str, version: int | None, text: str) -> Document:
        """A document appeared on the screen, or appeared anew."""
        document = Document(key, path, version, text, self._make_analyser())
        self._enter(document)
        return document

    def open_notebook(self, key: str, path: str, version: int | None) -> Notebook:
        """A notebook appeared on the screen; its cells are still to come."""
        notebook = Notebook(key, path, version, self._make_analyser())
        self._enter(notebook)
        return notebook

    def close(self, document: Document) -> set[str]:
        """A document left the screen; the paths elsewhere that it had spoken of are given back."""
        self.open.documents.pop(document.key, None)
        self.evidence.forget(document.path)
        for key in [key for key, notebook in self.open.cells.items() if notebook is document]:
            del self.open.cells[key]
        pending = self._pending.pop(document.key, None)
        if pending is not None:
            _drop_timer(pending)
            _wake(pending)
        self._came_or_went(document)
        if _elsewhere(document):
            self.on_outdated()
        return _elsewhere(document)

    def changed(self, document: Document, pause: float | None = None) -> None:
        """The text of a document changed: analyse it when it rests, and what imports it after that."""
        self._supersede(document)
        if document.options.run == "onType":
            self.request(document, pause)
        self._imported_changed(document)

    def saved(self, document: Document) -> None:
        """A document was written to disk."""
        document.saved_at = document.edits
        if not document.is_fresh:
            self.request(document, 0.0)

    def is_due(self, document: Document) -> bool:
        """Whether a new report on a document is wanted before its next save."""
        return (
            document.report is None or document.saved_at == document.edits or document.options.run == "onType"
        )

    def use_options(self, options: FolderOptions) -> None:
        """The user has chosen something else; what was said under other choices is not taken back by this."""
        self.options = options
        for document in self.open.documents.values():
            document.options, document.settings = options.at(document.path), None

    # What is due.

    def request(self, document: Document, pause: float | None = None) -> None:
        """Have a document analysed after a pause (by default the user's); an earlier request is superseded."""
        pending = self._pending.get(document.key)
        if pending is None:
            return
        _drop_timer(pending)
        if not document.options.enable:
            self._accept(document, Report(document.path), document.edits)
            return
        if self.is_pulled:
            return
        if pause is None:
            pause = document.options.debounce / 1000
        loop = asyncio.get_running_loop()
        pending.timer = loop.call_later(pause, self._start, document)

    async def current(self, document: Document) -> bool:
        """Wait until the document's report is about its text as it is now; False if it was closed meanwhile."""
        while not document.is_fresh:
            if not document.options.enable:
                self.request(document)
                return True
            pending = self._pending.get(document.key)
            if pending is None or self.open.documents.get(document.key) is not document:
                return False
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            pending.waiters.append(waiter)
            if pending.running is None:
                _drop_timer(pending)
                self._start(document, Urgency.AWAITED)
            await waiter
        return True

    def outdate(self, documents: Iterable[Document]) -> None:
        """Settings or files around these documents changed: analyse them again."""
        for document in list(documents):
            document.outdate()
            document.saved_at = document.edits
            self.request(document, 0.0)
        self.on_outdated()

    def files_changed(self, paths: Iterable[str]) -> None:
        """Files on disk changed, came or went."""
        shown = {document.path for document in self.open.documents.values()}
        concerned = {path for path in paths if self.files.asked_for(path) and path not in shown}
        if not concerned:
            return
        self._forget_files(concerned)
        self.imported.outdate()
        self.scanner.forget()
        self.outdate(self.open.documents.values())

    def poll_files(self) -> None:
        """Look for changed files ourselves."""
        self.files_changed(self.files.changed_on_disk())

    # What is said.

    def settings_for(self, document: Document) -> Settings:
        """The settings that hold for a document; what is wrong with them is said once."""
        if document.settings is None:
            document.settings = self._settings(document.path, document.options)
        return document.settings

    def settings_at(self, path: str) -> Settings:
        """The settings that hold for a file, open or not."""
        return self._settings(path, self.options.at(path))

    def _settings(self, path: str, options: Options) -> Settings:
        configuration = self.files.configuration_for(path)
        for complaint in configuration.complaints:
            self.complain(complaint)
        settings = options.settings(configuration.settings)
        if settings.models and not os.path.isabs(settings.models):
            from gradsight.session.configuration import located, problems_of_models

            settings = located(settings, self.files.root_of(path))
            for complaint in problems_of_models(settings.models, self.files.root_of(path)):
                self.complain(f"gradsight.{complaint}")
        return replace(settings, facts=self._facts_of(options))

    @staticmethod
    def _facts_of(options: Options) -> str:
        """The facts of the interpreter that the user has chosen, where they were measured."""
        if not has_tables():
            return ""
        from gradsight.session.interpreters import resolve

        chosen = options.probe.interpreter
        return measured_facts(resolve(chosen) if chosen else "")

    def complain(self, text: str) -> None:
        """Say once that something was not understood."""
        if text not in self._complained:
            self._complained.add(text)
            self.on_complaint(text)

    def findings_of(self, document: Document) -> tuple[Finding, ...]:
        """What there is to show in a document, as far as probes have not withdrawn it."""
        return self.evidence.overlay(document.path, document.source.text, self.static_findings(document))

    def static_findings(self, document: Document) -> tuple[Finding, ...]:
        """What was found in a document: its own findings, and those made in it on behalf of other documents."""
        own = [finding for finding in document.findings if finding.path == document.path]
        settings = self.settings_for(document)
        shown = self._visible(own, self.findings_at(document.path, document), settings)
        if not settings.per_file_ignores:
            return shown
        from gradsight.session.walking import is_ignored_in

        root = self.files.root_of(document.path)
        return tuple(each for each in shown if not is_ignored_in(each.path, each.code, root, settings))

    def findings_at(self, path: str, but: Document | None = None) -> tuple[Finding, ...]:
        """What open documents (but one) found at another path that they import."""
        return tuple(
            finding
            for document in self.open.documents.values()
            if document is not but and document.path != path
            for finding in document.findings
            if finding.path == path
        )

    def _visible(
        self, own: list[Finding], others: Iterable[Finding], settings: Settings
    ) -> tuple[Finding, ...]:
        found = gravest([*own, *others]).values()
        shown = sorted(found, key=lambda finding: (finding.span.line, finding.span.column, finding.code))
        return tuple(finding for finding in shown if settings.hints or finding.severity != "hint")

    async def cards(self, document: Document, first_line: int, last_line: int) -> Sequence[Card]:
        """What the engine knows about the tensor names of some lines, as long as it has seen the text as it is now."""
        if document.report is None or not document.is_fresh or not is_about_torch(document.source.text):
            return ()
        settings, source, analyser = self.settings_for(document), document.source, document.analyser
        if len(source.text) > settings.most_bytes or self._is_excluded(document, settings):
            return ()
        finder = self.files.finder_for(document.path)

        def work() -> Sequence[Card]:
            return analyser.cards(source, settings, finder, first_line, last_line)

        return await self.worker.submit(Urgency.AWAITED, work, document.key)

    def workshop(self, document: Document) -> Workshop:
        """What is needed to repair a document whose report is fresh; changed texts are tried as it itself is checked."""
        settings, finder, analyser = (
            self.settings_for(document),
            self.files.finder_for(document.path),
            document.analyser,
        )

        def check(source: Source) -> Report:
            return analyser.analyze(source, settings, finder, lambda: False) or Report(source.path)

        others = self.findings_at(document.path, document)
        return Workshop(document.source, settings, document.report or Report(document.path), check, others)

    # How it is done.

    def _enter(self, document: Document) -> None:
        before = self.open.documents.get(document.key)
        if before is not None:
            self.close(before)
        document.options = self.options.at(document.path)
        self.open.documents[document.key] = document
        self._pending[document.key] = PendingAnalysis()
        self._came_or_went(document)

    def _came_or_went(self, document: Document) -> None:
        """A document was opened or closed: an import may lead to it now, or past it."""
        if self.files.asked_for(document.path):
            self.imported.outdate()
        self._imported_changed(document, self.files.missed_in(document.path))

    def _imported_changed(self, changed: Document, missed_in: Collection[str] = ()) -> None:
        """Whoever imports this document is analysed again, after it, and whoever missed it."""
        if not self.files.asked_for(changed.path):
            return
        self._forget_files([changed.path])
        importing = [
            document
            for document in self.open.documents.values()
            if document is not changed and (changed.path in document.asked or _reads_in(document, missed_in))
        ]
        for document in importing:
            document.outdate()
            document.saved_at = document.edits
            self.request(document)
        if importing:
            self.on_outdated()

    def _forget_files(self, paths: Collection[str]) -> None:
        self.files.forget(paths)
        if any(os.path.basename(path) == CONFIGURATION_FILE for path in paths):
            for document in self.open.documents.values():
                document.settings = None

    def _supersede(self, document: Document) -> None:
        """An armed timer speaks of an older text."""
        pending = self._pending.get(document.key)
        if pending is not None:
            _drop_timer(pending)

    def _start(self, document: Document, urgency: Urgency = Urgency.TYPED) -> None:
        pending = self._pending.get(document.key)
        if pending is None or self.open.documents.get(document.key) is not document:
            return
        pending.timer = None
        if pending.running is not None:
            return
        settings = self.settings_for(document)
        edits, source = document.edits, document.source
        if self._is_excluded(document, settings) or self._is_too_large(document, settings):
            self._accept(document, Report(document.path), edits)
            return
        finder = self.files.finder_for(document.path)
        self.files.open_sources = {other.path: other.source for other in self.open.documents.values()}
        analyser = document.analyser
        self.analyses += 1
        report = analyser.analyze_at_once(source, settings, finder)
        if report is not None:
            self._accept(document, report, edits)
            return

        def is_wanted() -> bool:
            return document.edits == edits and self.open.documents.get(document.key) is document

        def work() -> Report | None:
            started = time.thread_time()

            def stop() -> bool:
                # Who is not wanted any more gives back at once what others wait for.
                if is_wanted():
                    self.worker.give_way()
                return not is_wanted() or time.thread_time() - started > MOST_SECONDS

            report = analyser.analyze(source, settings, finder, stop)
            if report is None and is_wanted():
                return Report(source.path, gaps=(Gap(TOOK_TOO_LONG, 0, kind="budget"),))
            return report

        pending.running = self.worker.submit(urgency, work, document.key)
        shown = self.files.open_sources
        pending.running.add_done_callback(lambda done: self._finished(document, settings, edits, done))
        pending.running.add_done_callback(lambda done: self._catch_up(document, shown))

    def _finished(
        self, document: Document, settings: Settings, edits: int, done: asyncio.Future[Report | None]
    ) -> None:
        pending = self._pending.get(document.key)
        if pending is None or pending.running is not done:
            return
        pending.running = None
        if done.cancelled():
            return
        report = None
        problem = done.exception()
        if problem is not None:
            log.error("analysis of %s failed", document.path, exc_info=problem)
            report = Report(document.path)
        else:
            report = done.result()
        if report is not None and edits == document.edits:
            self._accept(document, report, edits)
        elif pending.timer is None or pending.waiters:
            _drop_timer(pending)
            self._start(document)

    def _catch_up(self, document: Document, shown: Mapping[str, Source]) -> None:
        """A file that the analysis looked for may have been opened, closed or edited while it ran."""
        now = {other.path: other.source for other in self.open.documents.values()}
        if document.is_fresh and any(
            now.get(path) != shown.get(path) for path in document.asked if path != document.path
        ):
            self.files.forget(document.asked)
            document.outdate()
            self.request(document, 0.0)
            self.on_outdated()

    def _accept(self, document: Document, report: Report, edits: int) -> None:
        before, elsewhere = _found_elsewhere(document), _elsewhere(document)
        document.accept(report, edits, report.depends_on)
        elsewhere |= _elsewhere(document)
        log_gaps(report)
        pending = self._pending.get(document.key)
        if pending is not None:
            _wake(pending)
        self.on_report(document, elsewhere)
        if _found_elsewhere(document) != before:
            # Whoever shows one of those files has asked before this was known.
            self.on_outdated()
        self.housekeeper.answered()

    def _is_too_large(self, document: Document, settings: Settings) -> bool:
        if len(document.source.text) <= settings.most_bytes:
            return False
        self.complain(f"{os.path.basename(document.path)} {too_large(settings.most_bytes)}")
        return True

    def _is_excluded(self, document: Document, settings: Settings) -> bool:
        if not settings.exclude or not os.path.isabs(document.path):
            return False
        from gradsight.session.walking import is_excluded

        return is_excluded(document.path, self.files.root_of(document.path), settings.exclude)


def _reads_in(document: Document, folders: Collection[str]) -> bool:
    """Whether a document, or a file that it imports, lies in one of some folders."""
    return bool(folders) and any(
        os.path.dirname(path) in folders for path in (document.path, *document.asked)
    )


def _found_elsewhere(document: Document) -> tuple[Finding, ...]:
    """What a document's analysis found in other files."""
    return tuple(finding for finding in document.findings if finding.path != document.path)


def _elsewhere(document: Document) -> set[str]:
    """The other paths that a document's findings lie in."""
    return {finding.path for finding in document.findings if finding.path != document.path}


def _drop_timer(pending: PendingAnalysis) -> None:
    if pending.timer is not None:
        pending.timer.cancel()
        pending.timer = None


def _wake(pending: PendingAnalysis) -> None:
    waiters, pending.waiters = pending.waiters, []
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)


def _log_failure(done: asyncio.Future[None]) -> None:
    if not done.cancelled() and done.exception() is not None:
        log.error("the engine could not be loaded", exc_info=done.exception())
