"""analyze(source, settings) -> Report: the pure and total core."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable

from gradsight.interp.entries import explore_module
from gradsight.interp.machine import Program
from gradsight.interp.parsing import parse_text
from gradsight.model.events import SEVERITY_ORDER, Event
from gradsight.model.finding import Finding
from gradsight.model.report import Gap, Report
from gradsight.model.rule import Rule
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.model.suppressions import apply_suppressions
from gradsight.ops.table import load
from gradsight.rules import ALL

Finder = Callable[[str, int, str], "Source | None"]
log = logging.getLogger(__name__)
_BY_KIND: dict[str, list[Rule]] = {}
for _rule in ALL:
    for _kind in _rule.kinds:
        _BY_KIND.setdefault(_kind, []).append(_rule)


def analyze(source: Source, settings: Settings | None = None, finder: Finder | None = None) -> Report:
    """Everything there is to say about one source.  Never raises on user code.

    `finder(module, level, importing_path)` hands in the sources of workspace modules; the core itself reads no file.
    """
    settings = settings if settings is not None else Settings()
    if "torch" not in source.text and finder is None:
        return Report(source.path)
    parsed = parse_text(source.path, source.text)
    program = Program(load())
    program.finder = finder
    events: list[Event] = []
    if parsed.units:
        events = _guarded(lambda: explore_module(program, source, parsed.units), source.path)
    findings = judge(events, settings)
    kept, unused = apply_suppressions(
        source, [finding for finding in findings if finding.path == source.path], settings
    )
    elsewhere = [finding for finding in findings if finding.path != source.path]
    gaps = tuple(Gap(reason, line, count) for (reason, line), count in sorted(program.gaps.items()))
    return Report(
        source.path,
        tuple(kept + elsewhere),
        gaps,
        tuple(parsed.problems),
        tuple(unused),
        tuple(sorted(program.depends_on)),
    )


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
    findings = list(found.values())
    loud = {
        (finding.path, finding.span.line)
        for finding in findings
        if finding.code in ("GS101", "GS102", "GS103", "GS104", "GS106")
    }
    findings = [
        finding for finding in findings
        if not (finding.code in ("GS107", "GS190", "GS105") and (finding.path, finding.span.line) in loud)
    ]  # fmt: skip
    findings.sort(key=lambda finding: (finding.path, finding.span.line, finding.span.column, finding.code))
    return findings


def _judge_one(rule: Rule, event: Event) -> Finding | None:
    """One rule's failure never silences the others; in tests the failure is raised."""
    try:
        return rule.judge(event)
    except Exception:
        if os.environ.get("GRADSIGHT_STRICT"):
            raise
        log.exception("rule %s failed on %s", rule.code, event.kind)
        return None


def _guarded(work: Callable[[], list[Event]], path: str) -> list[Event]:
    try:
        return work()
    except Exception:
        if os.environ.get("GRADSIGHT_STRICT"):
            raise
        log.exception("the machine failed on %s", path)
        return []


def _with_severity(finding: Finding, severity: str) -> Finding:
    from dataclasses import replace

    return replace(finding, severity=severity)  # type: ignore[arg-type]
