"""`gradsight fix` on notebooks: the cell that is wrong is changed, and nothing else in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gradsight.cli import main

CELLS = ["%matplotlib inline\nimport torch", "x = torch.ones(3, requires_grad=True)\ny = x.exp()", "y *= 2  # scale", "y.sum().backward()"]  # fmt: skip


def notebook(cells: list[str], as_lists: bool) -> dict[str, Any]:
    return {
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": ["# Title"]},
            *(
                {
                    "cell_type": "code", "execution_count": number, "metadata": {"id": str(number)}, "outputs": [],
                    "source": text.splitlines(keepends=True) if as_lists else text,
                }
                for number, text in enumerate(cells)
            ),
        ],
        "metadata": {"kernelspec": {"language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }  # fmt: skip


@pytest.mark.parametrize("as_lists", [True, False])
def test_one_cell_is_fixed_and_the_rest_of_the_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_lists: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("lesson.ipynb")
    before = json.dumps(notebook(CELLS, as_lists), indent=1) + "\n"
    path.write_text(before)
    assert main(["fix", "--diff", "lesson.ipynb"]) == 1
    shown = "--- lesson.ipynb:cell 4\n+++ lesson.ipynb:cell 4\n@@ -1 +1 @@\n-y *= 2  # scale\n+y = y * 2  # scale\n"
    assert capsys.readouterr().out == shown
    assert path.read_text() == before
    assert main(["fix", "lesson.ipynb"]) == 0
    assert "lesson.ipynb: GS101 replace with `y = y * 2`" in capsys.readouterr().out
    wanted = notebook([*CELLS[:2], "y = y * 2  # scale", CELLS[3]], as_lists)
    assert path.read_text() == json.dumps(wanted, indent=1) + "\n"


def test_every_line_that_is_shown_is_in_a_cell_with_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lesson.ipynb").write_text(json.dumps(notebook(CELLS, as_lists=True)))
    assert main(["check", "lesson.ipynb"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[1:3] == ["  . cell 3", "  2 | y = x.exp()"]
    assert [line for line in said if line.startswith("  . ")] == ["  . cell 3", "  . cell 4", "  . cell 5"]
