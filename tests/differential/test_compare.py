"""The comparer: alarms on exact programs, misses, wrong lines."""

from __future__ import annotations

import pytest

from gradsight.model import Finding, Severity, Span
from gradsight_dev.fuzz.compare import compare
from gradsight_dev.fuzz.oracle import Failure, Truth

STALE = Failure(
    "version", "RuntimeError", "modified by an inplace operation", 9, frozenset({5, 6}), frozenset({3})
)
FAILING = Truth("raises", (STALE,))
SILENT = Truth(
    "silent", (Failure("silent", "", "x.grad is wrong", 0, frozenset({4})),), unseen=frozenset({4})
)
MASKED = Truth("masked", unseen=frozenset({4}))


def check(truth: Truth, said: list[tuple[str, Severity, int]], expected: str) -> None:
    """Compare a truth with findings given as (code, severity, line)."""
    findings = [
        Finding(code, "name", "message", severity, "certain", "<program>", Span(line, 0, line, 1))
        for code, severity, line in said
    ]
    assert compare(truth, findings).result == expected


def test_silence_on_an_exact_program_agrees() -> None:
    check(Truth("exact"), [], "agrees")


@pytest.mark.parametrize("code", ["GS101", "GS203", "GS501", "GS402"])
def test_any_error_on_an_exact_program_is_a_false_alarm(code: str) -> None:
    check(Truth("exact"), [(code, "error", 3)], "false alarm")


@pytest.mark.parametrize("code", ["GS101", "GS102", "GS103", "GS104", "GS106", "GS401", "GS402"])
def test_warnings_that_speak_of_failure_are_false_alarms_too(code: str) -> None:
    check(Truth("exact"), [(code, "warning", 3)], "false alarm")


def test_advice_on_an_exact_program_is_no_alarm() -> None:
    check(Truth("exact"), [("GS203", "warning", 3), ("GS190", "hint", 4), ("GS105", "warning", 4)], "agrees")


def test_silence_on_a_failing_program_is_a_miss() -> None:
    check(FAILING, [], "miss")


def test_another_family_on_a_failing_program_is_a_miss() -> None:
    check(FAILING, [("GS401", "error", 5)], "miss")


def test_a_hint_does_not_count_as_found() -> None:
    check(FAILING, [("GS101", "hint", 5)], "miss")


def test_right_family_on_a_causing_line_agrees() -> None:
    check(FAILING, [("GS106", "warning", 6)], "agrees")


def test_right_family_elsewhere_is_a_wrong_line() -> None:
    check(FAILING, [("GS101", "error", 9)], "wrong line")


def test_carried_graphs_may_be_reported_where_they_are_carried() -> None:
    check(FAILING, [("GS403", "error", 3)], "agrees")
    check(FAILING, [("GS101", "error", 3)], "wrong line")


def test_one_explained_path_is_enough_but_is_noted() -> None:
    other = Failure("leaf", "RuntimeError", "a leaf Variable that requires grad", 7, frozenset({7}))
    comparison = compare(
        Truth("raises", (STALE, other), 2),
        [Finding("GS102", "name", "message", "error", "certain", "<program>", Span(7, 0, 7, 1))],
    )
    assert comparison.result == "agrees"
    assert comparison.partly


def test_silent_wrongs_are_counted_apart() -> None:
    check(SILENT, [], "silent miss")
    check(SILENT, [("GS104", "warning", 4)], "agrees")
    check(SILENT, [("GS104", "warning", 8)], "silent wrong line")
    check(SILENT, [("GS402", "error", 4)], "false alarm")
    check(SILENT, [("GS104", "warning", 4), ("GS104", "warning", 8)], "false alarm")


@pytest.mark.parametrize("truth", [SILENT, MASKED])
def test_what_is_said_of_a_refusal_is_false_where_torch_refuses_nothing(truth: Truth) -> None:
    check(truth, [("GS104", "warning", 4), ("GS101", "error", 4)], "false alarm")


def test_masked_changes_forgive_what_is_said_on_their_lines_only() -> None:
    check(MASKED, [], "agrees")
    check(MASKED, [("GS104", "warning", 4)], "agrees")
    check(MASKED, [("GS104", "warning", 8)], "false alarm")
    check(MASKED, [("GS102", "error", 4)], "false alarm")


def test_cut_graphs_forgive_findings_about_cuts_only() -> None:
    check(Truth("cut"), [("GS203", "error", 4)], "agrees")
    check(Truth("cut"), [("GS101", "error", 4)], "false alarm")


def test_foreign_programs_are_not_judged() -> None:
    check(Truth("foreign"), [("GS101", "error", 4)], "unjudged")


def test_failures_no_rule_promises_are_not_judged() -> None:
    flags = Failure("flags", "RuntimeError", "only change requires_grad flags", 2, frozenset({2}))
    check(Truth("raises", (flags,)), [], "unjudged")
