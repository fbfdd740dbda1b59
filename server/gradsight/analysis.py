"""analyze(source, settings) -> Report: the pure and total core."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from gradsight.detect import AllDetectors
from gradsight.interp.memory import Memory, Record
from gradsight.interp.parsing import Parsed, parse_text, reparse
from gradsight.interp.path_state import Audience, Program, Unwanted
from gradsight.interp.paths.assembly import Machine
from gradsight.interp.paths.entries import explore_module
from gradsight.interp.paths.shared_modules import OURS, SharedModules
from gradsight.interp.used_names import Told, merge
from gradsight.model.card import Card
from gradsight.model.events import SEVERITY_ORDER, Event
from gradsight.model.finding import Finding
from gradsight.model.relevance import is_about_torch
from gradsight.model.report import Gap, GapKind, Report, SyntaxProblem
from gradsight.model.rule import Rule
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.model.suppressions import apply_suppressions
from gradsight.ops.table import Table, table_of
from gradsight.rules import ALL, rule_of

Finder = Callable[[str, int, str], "Source | None"]
Stop = Callable[[], bool]
log = logging.getLogger(__name__)
MODELS = Path(__file__).with_name("models")
"""What we know of libraries: a folder of Python files, laid out as the libraries are."""
_BY_KIND: dict[str, list[Rule]] = {}
for _rule in ALL:
    for _kind in _rule.kinds:
        _BY_KIND.setdefault(_kind, []).append(_rule)


@cache
def library_model(module: str) -> Source | None:
    """Our model of a module of a library, read once; it is text for the machine, and is never imported."""
    parts = module.split(".")
    for file in (MODELS.joinpath(*parts, "__init__.py"), MODELS.joinpath(*parts).with_suffix(".py")):
        if file.is_file():
            return Source(f"{OURS}{module}", file.read_text(encoding="utf-8"), library=parts[0])
    return None


def analyze(
    source: Source,
    settings: Settings | None = None,
    finder: Finder | None = None,
    analyser: Analyser | None = None,
) -> Report:
    """Everything there is to say about one source.  Never raises on user code.

    `finder(module, level, importing_path)` hands in the sources of workspace modules; the core itself reads no file.
    `analyser` knows of other texts, and of modules of the same workspace; one thread at a time may use it.
    """
    return (analyser if analyser is not None else Analyser()).analyze(source, settings, finder)


def no_modules() -> SharedModules:
    """Nothing is known of any module yet."""
    return SharedModules(Machine)


class Analyser:
    """Analyses the same files again and again, at the cost of what changed; the reports are those of a fresh analysis."""

    def __init__(self, modules: SharedModules | None = None) -> None:
        self._memories: dict[str, Memory] = {}
        self._table: Table | None = None
        self._modules = modules if modules is not None else no_modules()
        self._is_doubtful = False
        """Whether files that are imported may have changed."""

    def forget_results(self) -> None:
        """What was worked out of the files themselves does not hold any more."""
        self._memories.clear()

    def forget(self, path: str) -> None:
        """Drop what is remembered of a file, for instance when it is closed or a file it imports has changed."""
        self._memories.pop(path, None)
        self._is_doubtful = True

    def analyze(
        self, source: Source, settings: Settings | None = None, finder: Finder | None = None
    ) -> Report:
        """The report on one source, reusing what is remembered of its path."""
        report = self.analyze_unless(lambda: False, source, settings, finder)
        assert report is not None
        return report

    def analyze_unless(
        self, stop: Stop, source: Source, settings: Settings | None = None, finder: Finder | None = None
    ) -> Report | None:
        """The same, or None once `stop` says that nobody wants it; what was worked out by then is remembered."""
        with collector_paused():
            return self._analyze(stop, source, settings, finder)

    def cards(
        self,
        source: Source,
        first_line: int,
        last_line: int,
        settings: Settings | None = None,
        finder: Finder | None = None,
    ) -> tuple[Card, ...]:
        """What is known about the tensor names and calls on some lines; nothing is executed for it before it is asked for."""
        memory = self._memories.get(source.path)
        if (
            memory is None
            or memory.text != source.text
            or self._modules.is_forgotten(memory.uses, memory.age)
        ):
            # What is seen of a name is seen in the text as it is, be it broken.
            with collector_paused():
                self._analyze(lambda: False, source, settings, finder, must_execute=True)
            memory = self._memories.get(source.path)
            if memory is None:
                return ()
        program = _program(finder, settings, self._modules)
        with collector_paused():
            return tuple(_cards(program, source, memory, first_line, last_line))

    def _analyze(
        self,
        stop: Stop,
        source: Source,
        settings: Settings | None,
        finder: Finder | None,
        must_execute: bool = False,
    ) -> Report | None:
        settings = settings if settings is not None else Settings()
        if finder is None and not is_about_torch(source.text, settings.models):
            self.forget(source.path)
            return Report(source.path)
        table = table_of(settings.facts)
        if table is not self._table:
            # What was worked out rests on the facts of another torch.
            self._memories.clear()
            self._table = table
        self._modules.use(table, settings.models, source)
        if self._is_doubtful:
            self._is_doubtful = False
            self._modules.check(finder)
        memory = self._memories.pop(source.path, None)
        if memory is None or self._modules.is_forgotten(memory.uses, memory.age):
            memory = Memory()
            parsed = parse_text(source.path, source.text)
        else:
            said, parsed = _said_or_parsed(memory, source, settings, must_execute)
            if said is not None:
                self._memories[source.path] = memory
                return self._with_uses(said, memory)
            memory.retire_units(memory.units, parsed.units)
            memory.take_over(parsed.grafts)
        if settings.models and source.path.startswith(os.path.join(settings.models, "")):
            # A model speaks of other programs; alone it is text.
            return Report(source.path, syntax_problems=tuple(parsed.problems))
        memory.age = self._modules.age
        program = _program(finder, settings, self._modules, AllDetectors())
        program.is_unwanted = stop
        records: list[Record] = []
        if parsed.units:
            memory.text, memory.window = source.text, parsed.window
            try:
                found = _guarded(lambda: explore_module(program, source, memory, parsed.units), source.path)
            except Unwanted:
                merge(memory.uses, program.uses)
                self._memories[source.path] = memory
                return None
            merge(memory.uses, program.uses)
            if found is not None:
                records = found
                self._memories[source.path] = memory
            else:
                records = [Record()]
                records[0].gaps[("the machine failed", parsed.units[0], 0, "internal")] = 1
        report = _report(source, settings, records, parsed.problems, memory)
        memory.recent.keep(source.text, settings, report, parsed.units)
        return self._with_uses(report, memory)

    def _with_uses(self, report: Report, memory: Memory) -> Report:
        """A report with what it used of other modules."""
        mentioned = {gap.path for gap in report.gaps}
        for finding in report.findings:
            mentioned |= {finding.path, *(step.path for step in finding.related)}
        key = (self._modules.age, sum(map(len, memory.uses.values())), len(memory.uses), frozenset(mentioned))
        if memory.used is None or memory.used[0] != key:
            sources = {
                path: known.source
                for path, known in self._modules.modules.items()
                if path in memory.uses and not path.startswith(OURS)
            }
            uses = {path: frozenset(memory.uses[path]) for path in sources}
            memory.used = (key, Told(self._modules.outlines, uses, sources, mentioned))
        return replace(report, used=memory.used[1])


def _said_or_parsed(
    memory: Memory, source: Source, settings: Settings, must_execute: bool
) -> tuple[Report | None, Parsed]:
    """What can be said of a text without executing it; else its units."""
    recent, text = memory.recent, source.text
    nothing = Parsed(memory.units, [])
    if not must_execute:
        said = recent.known(text, settings)
        if said is not None:
            return said, nothing
        if not recent.is_last(memory.text):
            problem = recent.problem_around_line(text, settings)
            if problem is not None:
                return recent.still_said(text, problem), nothing
    parsed = reparse(
        source.path,
        text,
        memory.text,
        memory.units,
        memory.window,
        lambda: not must_execute and recent.is_last(memory.text) and recent.is_unfinished(text, settings),
        memory.retired,
    )
    return recent.still_said(text, parsed.problems[0]) if parsed.is_left else None, parsed


def _program(
    finder: Finder | None, settings: Settings | None, modules: SharedModules, audience: Audience | None = None
) -> Program:
    program = Program(table_of(settings.facts if settings is not None else ""), audience)
    program.finder, program.models, program.shared = finder, library_model, modules
    if settings is not None and settings.models:
        program.own_models = os.path.join(settings.models, "")
    return program


@contextmanager
def collector_paused() -> Iterator[None]:
    """A syntax tree is many objects and no garbage: collecting while it grows costs more than the rest."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _report(
    source: Source,
    settings: Settings,
    records: list[Record],
    problems: list[SyntaxProblem],
    memory: Memory,
) -> Report:
    findings = judge((event for record in records for event in record.events), settings)
    here = [finding for finding in findings if finding.path == source.path]
    kept, unused = apply_suppressions(source, here, settings)
    elsewhere = [finding for finding in findings if finding.path != source.path]
    return Report(
        source.path,
        tuple(kept + elsewhere),
        _gaps(source, records, problems),
        tuple(problems),
        tuple(unused),
        tuple(sorted(path for path in memory.uses if not path.startswith(OURS))),
        memory.coverage,
    )


def _gaps(source: Source, records: list[Record], problems: list[SyntaxProblem]) -> tuple[Gap, ...]:
    """What was not understood, counted by reason and place."""
    counts: dict[tuple[str, str, int, GapKind], int] = {}
    for record in records:
        for (reason, unit, line, kind), count in record.gaps.items():
            path = "" if unit.path == source.path else unit.path
            key = (reason, path, line + unit.offset if line else 0, kind)
            counts[key] = counts.get(key, 0) + count
    told = [Gap(reason, line, count, kind, path) for (reason, path, line, kind), count in counts.items()]
    told += [Gap(problem.message, problem.span.line, kind="syntax") for problem in problems]
    return tuple(sorted(told, key=lambda gap: (gap.reason, gap.path, gap.line, gap.kind)))


def judge(events: Iterable[Event], settings: Settings) -> list[Finding]:
    """Findings in reading order; each rule speaks once per place, and a stronger finding silences a weaker echo of it."""
    found: dict[tuple[str, str, int, int], Finding] = {}
    for event in events:
        for rule in _BY_KIND.get(event.kind, ()):
            finding = _judge_one(rule, event)
            if finding is None or not settings.wants(finding.code):
                continue
            severity = settings.severity.get(finding.code)
            if severity is not None:
                finding = _with_severity(finding, severity)
            key = (finding.path, finding.code, finding.span.line, finding.span.column)
            known = found.get(key)
            if known is None or SEVERITY_ORDER[finding.severity] < SEVERITY_ORDER[known.severity]:
                found[key] = finding
    findings = _without_echoes(list(found.values()))
    findings.sort(key=lambda finding: (finding.path, finding.span.line, finding.span.column, finding.code))
    return findings


HARMLESS = [rule.code for rule in ALL if rule.says_harmless]


def _without_echoes(findings: list[Finding]) -> list[Finding]:
    """The findings that no other one silences, on its own line or on those through which it was reached.

    A write that a finding tells of is not called harmless, wherever that finding stands.
    """
    quiet: set[tuple[str, str, int]] = set()
    for finding in findings:
        rule = rule_of(finding.code)
        quiet.update((code, finding.path, finding.span.line) for code in rule.silences)
        if not rule.says_harmless:
            # What is wrong with a write, told here or elsewhere, is never called harmless beside it.
            places = [(step.path, step.span.line) for step in finding.related if step.role == "written"]
            quiet.update(
                (code, *place) for code in HARMLESS for place in [(finding.path, finding.span.line), *places]
            )
        for code in rule.silences_callers:
            quiet.update((code, step.path, step.span.line) for step in finding.related if step.role == "call")
    return [finding for finding in findings if (finding.code, finding.path, finding.span.line) not in quiet]


def _judge_one(rule: Rule, event: Event) -> Finding | None:
    """One rule's failure never silences the others; in tests the failure is raised."""
    try:
        return rule.judge(event)
    except Exception:
        if os.environ.get("GRADSIGHT_STRICT"):
            raise
        log.exception("rule %s failed on %s", rule.code, event.kind)
        return None


def _guarded(work: Callable[[], list[Record]], path: str) -> list[Record] | None:
    """None if the machine failed: then nothing is known, and nothing is kept for the next time."""
    try:
        return work()
    except Unwanted:
        raise
    except Exception:
        if os.environ.get("GRADSIGHT_STRICT"):
            raise
        log.exception("the machine failed on %s", path)
        return None


def _cards(program: Program, source: Source, memory: Memory, first: int, last: int) -> list[Card]:
    from gradsight.interp.paths.hover_facts import cards_between

    try:
        return cards_between(program, source.path, memory, first, last)
    except Exception:
        if os.environ.get("GRADSIGHT_STRICT"):
            raise
        log.exception("the machine failed to tell of %s", source.path)
        return []


def _with_severity(finding: Finding, severity: str) -> Finding:
    return replace(finding, severity=severity)  # type: ignore[arg-type]
