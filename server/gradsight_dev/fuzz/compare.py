"""Compares what the engine says with what torch does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from gradsight.model import Finding
from gradsight_dev.fuzz.oracle.truth import BY_NAME, CARRIED_CODES, Failure, Truth

Result = Literal[
    "agrees", "false alarm", "miss", "wrong line", "silent miss", "silent wrong line", "unjudged"
]
DISAGREEMENTS: tuple[Result, ...] = ("false alarm", "miss", "wrong line", "silent miss", "silent wrong line")

LOUD_CODES = ("GS101", "GS102", "GS103", "GS104", "GS106", "GS401", "GS402")
"""Rules that speak of failures: even as warnings they are false on a program that runs with exact gradients."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How engine and torch agree on one program; `family` or `code` says what about."""

    result: Result
    about: str = ""
    detail: str = ""
    partly: bool = False
    """Some paths fail in ways the engine does not mention."""


def compare(truth: Truth, findings: Sequence[Finding]) -> Comparison:
    """The judgement on one program."""
    if truth.verdict == "foreign":
        return Comparison("unjudged")
    if truth.verdict == "raises":
        return _compare_failures(truth, findings)
    silent = _compare_silent(truth.failures[0], findings) if truth.verdict == "silent" else None
    alarms = [finding for finding in findings if is_alarm(finding) and not _is_forgiven(finding, truth)]
    if silent is not None and silent.result == "silent wrong line":
        # The right story on the wrong line is counted as that, once.
        alarms = [finding for finding in alarms if not explains(finding, truth.failures[0])]
    if alarms:
        return Comparison("false alarm", alarms[0].code, "; ".join(map(_said, alarms)))
    return silent or Comparison("agrees")


def is_alarm(finding: Finding) -> bool:
    """Whether the finding claims that torch will fail or that gradients will be wrong."""
    return finding.severity == "error" or (finding.severity == "warning" and finding.code in LOUD_CODES)


def explains(finding: Finding, failure: Failure) -> bool:
    """Whether the finding tells the failure's story, on whatever line."""
    return finding.severity in ("error", "warning") and finding.code.startswith(BY_NAME[failure.family].codes)


def stands_right(finding: Finding, failure: Failure) -> bool:
    """Whether it stands on a line that causes the failure; any line will do where no cause could be found."""
    lines = failure.causes | failure.carried if finding.code in CARRIED_CODES else failure.causes
    return not failure.causes or finding.span.line in lines


def _compare_failures(truth: Truth, findings: Sequence[Finding]) -> Comparison:
    promised = [failure for failure in truth.failures if BY_NAME[failure.family].promised]
    if not promised:
        return Comparison("unjudged", truth.failures[0].family)
    results = [_compare_failure(failure, findings) for failure in promised]
    best = min(results, key=lambda comparison: ("agrees", "wrong line", "miss").index(comparison.result))
    partly = any(comparison.result != "agrees" for comparison in results)
    return Comparison(best.result, best.about, best.detail, partly)


def _compare_failure(failure: Failure, findings: Iterable[Finding]) -> Comparison:
    explaining = [finding for finding in findings if explains(finding, failure)]
    where = f"{failure.family} at line {failure.line}, caused by {sorted(failure.causes)}"
    if not explaining:
        others = "; ".join(_said(finding) for finding in findings if finding.severity in ("error", "warning"))
        return Comparison("miss", failure.family, f"{where}; said: {others or 'nothing'}")
    if not any(stands_right(finding, failure) for finding in explaining):
        return Comparison("wrong line", failure.family, f"{where}; said: {'; '.join(map(_said, explaining))}")
    return Comparison("agrees", failure.family)


def _compare_silent(failure: Failure, findings: Sequence[Finding]) -> Comparison:
    comparison = _compare_failure(failure, findings)
    if comparison.result == "miss":
        return Comparison("silent miss", "silent", comparison.detail)
    if comparison.result == "wrong line":
        return Comparison("silent wrong line", "silent", comparison.detail)
    return comparison


def _is_forgiven(finding: Finding, truth: Truth) -> bool:
    """A finding about something that did happen, though nothing raised."""
    if truth.verdict == "cut":
        return finding.code.startswith("GS2")
    if truth.verdict in ("silent", "masked"):
        return finding.code.startswith(BY_NAME["silent"].codes) and finding.span.line in truth.unseen
    return False


def _said(finding: Finding) -> str:
    return f"{finding.code} {finding.severity} line {finding.span.line} ({finding.message[:80]})"
