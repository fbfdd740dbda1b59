"""What is said about a run: a sentence whose parts add up, and a page with everything."""

from __future__ import annotations

from typing import Any

import pytest

from gradsight.model.finding import Finding
from gradsight.model.source import Span
from gradsight.session.run_details import Ran, ended, log_entry, page, sentence


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


def test_how_a_run_ended_is_said_without_torchs_hints_and_never_in_the_middle_of_a_word() -> None:
    document = run(row=34)
    document["error"]["message"] = (
        f"modified by an inplace operation{' of many words' * 9}. Hint: enable anomaly"
    )
    assert ended(document).endswith("of many words.")
    document["error"]["message"] = "word " * 200
    assert ended(document).endswith("word…")


def test_a_fault_that_nobody_predicted_is_counted() -> None:
    assert sentence(run(faults=1), [], []) == "1 fault seen"
    assert sentence(run(outcome="timeout"), [], []) == "no fault seen · the time limit was reached"


def test_the_page_names_the_command_each_verdict_and_the_output() -> None:
    finding = found("GS101", 3, "not-reached")
    ran = Ran("/p/python", "a b.py", ("--epochs", "3"), "/p", ("nice", "-n", "10"))
    text = page(run(row=7), [finding], "GradSight: 1 not reached", ran, "loss 0.1\n")
    assert "- command: `nice -n 10 /p/python 'a b.py' --epochs 3`\n- folder: `/p`" in text
    assert "- interpreter: `/p/python`" in text
    assert "- time: 1.2 s" in text
    assert "stopped at line 7: RuntimeError: modified" in text
    assert "| line 3 | GS101 a-rule | not reached | the run did not get there |" in text
    assert "```text\nloss 0.1\n```" in text
    assert "The program that was run" not in text


def test_the_log_has_one_line_for_each_finding() -> None:
    findings = [found("GS101", 3, "confirmed"), found("GS601", 9, None)]
    text = log_entry(run(row=7), findings, "GradSight: 1 confirmed", Ran("python", "a.py"), "loss 0.1\n")
    assert text.startswith("1 confirmed\n  command: python a.py\n  interpreter: python\n")
    assert "  line 3: GS101 confirmed (torch did what was predicted)\n" in text
    assert "  line 9: GS601 cannot be judged by running (a run like this shows no difference)\n" in text
    assert text.endswith("  the program printed:\n    loss 0.1")


def test_lines_of_a_notebook_are_named_by_their_cell_and_lead_there() -> None:
    finding = found("GS101", 3, "confirmed")
    text = page(
        run(row=7), [finding], "GradSight: GS101 confirmed", Ran("python", "book.ipynb"), "",
        lambda _path, line: f"cell {line // 2}, line 1", lambda path, line: f"file:///{path}#L{line}",
    )  # fmt: skip
    assert "| [cell 1, line 1](file:///a.py#L3) | GS101" in text
    assert "stopped at cell 3, line 1" in text


def test_the_page_of_a_proof_shows_the_program_that_was_made_for_it() -> None:
    text = page(run(), [], "", Ran("python", "a minimal program around GS101", program="import torch\n"), "")
    assert "- ran: a minimal program around GS101\n" in text
    assert text.endswith("## The program that was run\n\n```python\nimport torch\n```\n")
