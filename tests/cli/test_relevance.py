"""Which files are looked at: those that speak of torch, and those that import what trains with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradsight.cli import main
from gradsight.model.relevance import is_about_torch

TRAINER = """from transformers import Trainer

class Mine(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs)
        return outputs.loss{}
"""


def codes(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    main(["check", "--no-cache", "--format", "json", str(folder)])
    return [found["code"] for found in json.loads(capsys.readouterr().out)]


def test_a_program_that_trains_by_a_library_is_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(TRAINER.format(".detach()"))
    assert codes(tmp_path, capsys) == ["GS203"]
    (tmp_path / "train.py").write_text(TRAINER.format(""))
    assert codes(tmp_path, capsys) == []


def test_a_notebook_that_trains_by_a_library_is_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    lines = TRAINER.format(".detach()").splitlines(keepends=True)
    book = {"cells": [{**cell, "source": lines}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "train.ipynb").write_text(json.dumps(book, indent=1))
    assert codes(tmp_path, capsys) == ["GS203"]


def test_a_program_that_uses_a_library_of_the_users_own_models_is_looked_at(tmp_path: Path) -> None:
    program = "from acme.engine import Task\n\nTask().run()\n"
    assert not is_about_torch(program, str(tmp_path))
    (tmp_path / "acme").mkdir()
    assert is_about_torch(program, str(tmp_path))
    assert not is_about_torch(program, str(tmp_path / "missing"))


def test_other_programs_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.py").write_text("import json\nfrom munch import Munch\n\nprint(json.dumps(Munch()))\n")
    main(["check", "--no-cache", str(tmp_path)])
    assert "no torch in it" in capsys.readouterr().out
