"""Every label of the fixture programs is a claim about torch: here torch is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradsight_dev import verify_fixtures
from gradsight_dev.verify_fixtures import COLLECTIONS, Collection, prove, read_labels, stray_files

pytestmark = pytest.mark.facts


def check(collection: Collection) -> None:
    complaints = [
        f"{label['file']}: {text}" for label in read_labels(collection) for text in prove(collection, label)
    ]
    complaints += stray_files(collection)
    assert not complaints, "\n".join(complaints)


def collection_of_one(folder: Path, program: str, reference: str, **claims: object) -> Collection:
    (folder / "references").mkdir()
    (folder / "one.py").write_text(program, encoding="utf-8")
    (folder / "references" / "one.py").write_text(reference, encoding="utf-8")
    label = {"file": "one.py", "error": None, "raises_at": None, "hazard_lines": [], "related_lines": {}}
    label |= {"kind": "sample", "rule": [], "fix": "none needed", "crosses": None} | claims
    (folder / "labels.json").write_text(json.dumps([label]), encoding="utf-8")
    return Collection("sample", folder, folder / "references", folder / "labels.json")


@pytest.mark.parametrize("collection", COLLECTIONS, ids=lambda collection: collection.name)
def test_torch_agrees_with_every_label(collection: Collection) -> None:
    check(collection)


SQUARE = (
    "import torch\nx = torch.ones(2, requires_grad=True)\n{}\ny.sum().backward()\nGRADS = {{'x': x.grad}}\n"
)


def test_a_wrong_safe_label_is_refuted(tmp_path: Path) -> None:
    sample = collection_of_one(
        tmp_path, SQUARE.format("y = x * 2"), SQUARE.format("y = x * 3"), verdict="safe"
    )
    with pytest.raises(AssertionError, match="not those of the reference"):
        check(sample)


def test_a_wrong_silent_label_is_refuted(tmp_path: Path) -> None:
    claims = {"verdict": "silent-wrong", "hazard_lines": [3], "rule": ["GS203"]}
    sample = collection_of_one(tmp_path, SQUARE.format("y = x * 2"), SQUARE.format("y = 2 * x"), **claims)
    with pytest.raises(AssertionError, match="gradients are those of the reference"):
        check(sample)


def test_a_wrong_line_of_raising_is_refuted(tmp_path: Path) -> None:
    claims = {
        "verdict": "raises",
        "error": "leaf Variable",
        "raises_at": 4,
        "hazard_lines": [3],
        "rule": ["GS102"],
    }
    sample = collection_of_one(tmp_path, SQUARE.format("x += 1; y = x"), SQUARE.format("y = x + 1"), **claims)
    with pytest.raises(AssertionError, match="raises at line 3, not at 4"):
        check(sample)


def test_a_file_without_label_is_named(tmp_path: Path) -> None:
    sample = collection_of_one(
        tmp_path, SQUARE.format("y = x * 2"), SQUARE.format("y = 2 * x"), verdict="safe"
    )
    (tmp_path / "stray.py").write_text("", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"stray\.py has no label"):
        check(sample)


def test_the_command_exits_clean_on_one_program(capsys: pytest.CaptureFixture[str]) -> None:
    first = read_labels(COLLECTIONS[0])[0]["file"]
    assert verify_fixtures.main([first]) == 0
    assert "1 programs run" in capsys.readouterr().out
