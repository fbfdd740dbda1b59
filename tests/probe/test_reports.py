"""The document, the SARIF log, the readable report and the exit code, for every way a probe can end."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from gradsight.cli.documents import Documents
from gradsight.cli.run_sarif import sarif_of
from gradsight.cli.run_text import write
from gradsight.probe.document import document_of, exit_code_of
from gradsight.probe.outcome import Cancelled, CouldNotRun, Died, Observed, Outcome, Raised, TimedOut
from gradsight.probe.ranks import merge

PROGRAM = "import torch\nweights = torch.exp(energy)\nweights /= 2\nweights.sum().backward()\n"
KEYS = {
    *("outcome", "error", "faults", "parameters", "facts", "torch", "python", "seconds"),
    *("notes", "backwards", "steps", "stopped", "caught"),
}


def place(row: int, column: int, end: int) -> dict[str, Any]:
    return {
        "filename": "program.py",
        "location": {"row": row, "column": column},
        "end_location": {"row": row, "column": end},
    }


def fault(code: str = "GS101", severity: str = "error") -> dict[str, Any]:
    return {
        "code": code,
        "message": "`weights /= 2` overwrites the output of `exp`",
        "severity": severity,
        "certainty": "certain",
        **place(3, 1, 13),
        "related": [
            {"role": "saved", "message": "`exp` saves its output here", **place(2, 11, 28)},
            {"role": "written", "message": "overwritten here by `div_`, version 0 → 1", **place(3, 1, 13)},
            {"role": "needed", "message": "this `backward()` needs the old value", **place(4, 1, 25)},
        ],
        "evidence": {"torch": "modified by an inplace operation"},
    }


def report(**changes: Any) -> dict[str, Any]:
    plain = {
        "error": None, "faults": [], "parameters": [], "facts": [], "notes": [], "torch": "2.13.0", "python": "3.11.7",
        "seconds": 0.5, "stopped": "", "internal_error": "", "graph": None,
    }  # fmt: skip
    return {**plain, **changes}


ERROR = {"type": "RuntimeError", "message": "modified by an inplace operation", **place(4, 1, 25)}


@pytest.mark.parametrize(
    ("outcome", "word", "status"),
    [
        (Observed(report()), "clean", 0),
        (Observed(report(faults=[fault()])), "faults", 1),
        (Raised(report(error=ERROR, faults=[fault()])), "raised", 1),
        (Raised(report(error=ERROR)), "raised", 1),
        (TimedOut(5.0, report()), "timeout", 2),
        (TimedOut(5.0, report(faults=[fault()])), "timeout", 1),
        (TimedOut(5.0), "timeout", 2),
        (Died("the process was ended by SIGSEGV"), "died", 2),
        (Cancelled(), "died", 2),
        (CouldNotRun("there is no file x.py"), "could-not-run", 2),
    ],
)
def test_every_outcome_has_its_word_and_its_exit_code(outcome: Outcome, word: str, status: int) -> None:
    document = document_of(outcome)
    assert set(document) == KEYS
    assert document["outcome"] == word
    assert exit_code_of(document) == status
    json.dumps(document, allow_nan=False)
    json.dumps(sarif_of(document))
    assert rendered(document)


def test_fault_has_the_shape_of_a_finding() -> None:
    (finding,) = document_of(Observed(report(faults=[fault()])))["faults"]
    assert list(finding) == [
        "code", "name", "message", "severity", "certainty", "filename", "location", "end_location", "related", "fix",
        "evidence",
    ]  # fmt: skip
    assert finding["name"] == "inplace-on-saved"
    assert finding["fix"] is None
    assert [step["role"] for step in finding["related"]] == ["saved", "written", "needed"]


def test_readable_report_shows_three_spans_why_and_help() -> None:
    assert rendered(document_of(Raised(report(error=ERROR, faults=[fault()])))) == (
        "program.py:3:1: error GS101 `weights /= 2` overwrites the output of `exp`\n"
        "  2 | weights = torch.exp(energy)\n"
        "    |           ----------------- `exp` saves its output here\n"
        "  3 | weights /= 2\n"
        "    | ^^^^^^^^^^^^ overwritten here by `div_`, version 0 → 1\n"
        "  4 | weights.sum().backward()\n"
        "    | ------------------------ this `backward()` needs the old value\n"
        "  = trail: saved program.py:2 -> overwritten program.py:3 -> needed program.py:4\n"
        "  = torch: modified by an inplace operation\n"
        "  = help: write to a new tensor (`x = x * 2` instead of `x *= 2`), or clone the tensor before it is changed\n"
        "  inplace-on-saved: gradsight explain GS101\n"
        "\n"
        "the program raised RuntimeError, 1 fault found (torch 2.13.0, Python 3.11.7, 0.5 s)\n"
    )


def test_a_fault_in_a_cell_is_shown_with_its_cell(tmp_path: Path) -> None:
    book = tmp_path / "lesson.ipynb"
    code = [PROGRAM[:13], PROGRAM[13:]]
    cells = [
        {"cell_type": "markdown", "source": "words"},
        *({"cell_type": "code", "source": text, "outputs": [], "metadata": {}} for text in code),
    ]
    book.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    moved = fault()
    for each in (moved, *moved["related"]):
        each.update(filename=str(book), cell=3)
        for end in ("location", "end_location"):
            each[end] = {**each[end], "row": each[end]["row"] - 1}
    shown = io.StringIO()
    write(document_of(Raised(report(error=ERROR, faults=[moved]))), Documents(), shown)
    assert f"{book}:cell 3:2:1: error GS101" in shown.getvalue()
    assert "  2 | weights /= 2\n    | ^^^^^^^^^^^^ overwritten here" in shown.getvalue()


def test_a_table_without_a_single_gradient_is_left_out_when_backward_never_ended() -> None:
    rows = [{"name": "a.weight", "shape": [2, 3], "grad": "none", "norm": None}]
    assert "a.weight" not in rendered(document_of(Raised(report(error=ERROR, parameters=rows))))
    assert "a.weight" in rendered(document_of(Observed(report(parameters=rows))))


def test_what_could_not_be_run_is_said_without_a_class_name() -> None:
    text = rendered(document_of(CouldNotRun("there is no file x.py")))
    assert text.splitlines()[0] == "gradsight: there is no file x.py"


def test_error_without_a_gradient_story_is_shown_at_its_line() -> None:
    error = {"type": "KeyError", "message": "'lost'", **place(2, 11, 28)}
    text = rendered(document_of(Raised(report(error=error))))
    assert "KeyError: 'lost'" in text
    assert "program.py:2:11: KeyError: 'lost'" in text
    assert "2 | weights = torch.exp(energy)" in text


def test_parameters_that_need_attention_come_first() -> None:
    rows = [
        {"name": "a.weight", "shape": [2, 3], "grad": "ok", "norm": 0.5},
        {"name": "b.weight", "shape": [], "grad": "none", "norm": None},
        {"name": "c.weight", "shape": [4], "grad": "zero", "norm": 0.0},
    ]
    lines = rendered(document_of(Observed(report(parameters=rows)))).splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["parameter", "b.weight", "c.weight", "a.weight"]
    assert lines[3].split() == ["a.weight", "2×3", "ok", "0.5"]


def test_sarif_has_the_trail_as_a_thread_flow() -> None:
    log = sarif_of(document_of(Observed(report(faults=[fault()]))))
    (run,) = log["runs"]
    (result,) = run["results"]
    assert log["version"] == "2.1.0"
    assert result["ruleId"] == run["tool"]["driver"]["rules"][0]["id"] == "GS101"
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 3, "startColumn": 1, "endLine": 3, "endColumn": 13}
    steps = result["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["location"]["physicalLocation"]["region"]["startLine"] for step in steps] == [2, 3, 4]


def test_ranks_that_saw_the_same_fault_are_named_together() -> None:
    lost = {"type": "RuntimeError", "message": "connection closed by peer", "location": None}
    merged = merge(
        [
            (0, report(error=lost, notes=["one"])),
            (1, report(error=ERROR, faults=[fault()], notes=["one", "two"])),
            (2, report(error=ERROR, faults=[fault()], seconds=2.0)),
        ]
    )
    assert [entry["rank"] for entry in merged["faults"]] == [[1, 2]]
    assert merged["error"] == ERROR
    assert merged["notes"] == ["one", "two"]
    assert merged["seconds"] == 2.0


def rendered(document: dict[str, Any]) -> str:
    stream = io.StringIO()
    write(document, Documents(given={"program.py": PROGRAM}), stream)
    return stream.getvalue()
