"""`gradsight check --format json`: the `fix` of each finding, in the terms of the text it was found in."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gradsight import cli
from gradsight.model.fix import Edit, apply_edits
from gradsight.model.source import Span

FAILS = 'import torch\n\nx = torch.ones(3, requires_grad=True)\ny = x.exp()\ne = "😀"; y *= 2\ny.sum().backward()\n'
UNSAFE = "import torch\n\nx = torch.ones(3, requires_grad=True)\ny = x * 2\ny.backward()\n"
SAFE = FAILS.replace("y *= 2", "y = y * 2")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project that is the working folder."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(
    content: str, *, name: str = "train.py", form: str = "json", options: tuple[str, ...] = ()
) -> list[Any]:
    """The findings of one file as a machine reads them."""
    Path(name).write_text(content, encoding="utf-8")
    out, sys.stdout = sys.stdout, io.StringIO()
    try:
        cli.main(["check", "--no-cache", "--format", form, *options, name])
        said = sys.stdout.getvalue()
    finally:
        sys.stdout = out
    found: list[Any] = (
        json.loads(said) if form == "json" else [json.loads(line) for line in said.splitlines()]
    )
    return found


def applied(text: str, fix: dict[str, Any]) -> str:
    """The text after the edits of a fix, as any tool would apply them."""
    edits = [
        Edit(
            Span(
                edit["location"]["row"],
                edit["location"]["column"] - 1,
                edit["end_location"]["row"],
                edit["end_location"]["column"] - 1,
            ),
            edit["content"],
        )
        for edit in fix["edits"]
    ]
    return apply_edits(text, tuple(edits))


@pytest.mark.parametrize("form", ["json", "json-lines"])
def test_a_safe_fix_is_told_with_its_edits(form: str) -> None:
    (finding,) = check(FAILS, form=form)
    assert finding["fix"]["message"] == "replace with `y = y * 2`"
    assert finding["fix"]["applicability"] == "safe"
    assert applied(FAILS, finding["fix"]) == SAFE


def test_an_unsafe_fix_says_that_it_is_one() -> None:
    (finding,) = check(UNSAFE)
    assert finding["fix"]["applicability"] == "unsafe"
    assert check(applied(UNSAFE, finding["fix"])) == []


def test_what_cannot_be_repaired_has_no_fix() -> None:
    (finding,) = check("import torch\n\nx = torch.ones(3)\nx.sum().backward()\n")
    assert finding["fix"] is None


def test_the_settings_of_the_check_hold_for_the_fix_too() -> None:
    (finding,) = check(FAILS, options=("--select", "GS101"))
    assert finding["fix"]["applicability"] == "safe"


def test_in_a_notebook_the_edits_count_inside_their_cell() -> None:
    def cell(text: str) -> dict[str, Any]:
        return {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": text}

    lines = FAILS.splitlines(keepends=True)
    notebook = {
        "cells": [cell("".join(lines[:4])), cell("".join(lines[4:]))],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (finding,) = check(json.dumps(notebook), name="train.ipynb")
    assert [edit["cell"] for edit in finding["fix"]["edits"]] == [2]
    assert applied("".join(lines[4:]), finding["fix"]) == "".join(SAFE.splitlines(keepends=True)[4:])
