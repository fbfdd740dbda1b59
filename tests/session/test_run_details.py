"""What is said about a run: a sentence whose parts add up, and a page with everything."""

from __future__ import annotations

from typing import Any

import pytest

from gradsight.model.finding import Finding
from gradsight.model.source import Span
from gradsight.session.run_details import page, sentence


def found(code: str, line: int, verdict: str | None) -> Finding:
    data = {} if verdict is None else {"verdict": verdict}
    return Finding(code, "a-rule", "message", "error", "certain", "a.py", Span(line, 0, line, 5), data=data)


def run(outcome: str = "faults", faults: int = 0, row: int = 0) -> dict[str, Any]:
    error = (
        {"type": "RuntimeError", "message": "modified", "location": {"row": row, "column": 1}}
        if row
        else None
    )
    return {
        "outcome": outcome, "faults": [{}] * faults, "error": error, "torch": "2.13.0", "python": "3.11.2", "seconds": 1.25,
    }  # fmt: skip


def test_the_parts_of_a_summary_add_up() -> None:
    verdicts = ["confirmed", "confirmed", "not-reached", "not-reached", None, "undecided"]
    findings = [found("GS101", number, verdict) for number, verdict in enumerate(verdicts, 1)]
    said = sentence(run(faults=2, row=123), findings, findings)
    assert said == "2 confirmed · 2 not reached: stopped at line 123 · 2 cannot be judged by running"


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("confirmed", "GS101 confirmed"),
        ("refuted", "GS101 refuted"),
        (None, "GS101 cannot be judged by running"),
    ],
)
def test_a_single_finding_is_named(verdict: str | None, said: str) -> None:
    finding = found("GS101", 3, verdict)
    assert sentence(run(faults=verdict == "confirmed"), [finding], [finding]) == said


def test_a_fault_that_nobody_predicted_is_counted() -> None:
    assert sentence(run(faults=1), [], []) == "1 fault seen"
    assert sentence(run(outcome="timeout"), [], []) == "no fault seen · the time limit was reached"


def test_the_page_names_the_interpreter_each_verdict_and_the_output() -> None:
    finding = found("GS101", 3, "not-reached")
    text = page(run(row=7), [finding], "GradSight: 1 not reached", "/p/python", "loss 0.1\n")
    assert "- interpreter: `/p/python`" in text
    assert "- time: 1.2 s" in text
    assert "stopped at line 7: RuntimeError: modified" in text
    assert "| 3 | GS101 a-rule | not reached | the run did not get there |" in text
    assert "```text\nloss 0.1\n```" in text
