"""One word for one thing: no class name stands twice in the product."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.house.tree import ROOT

PRODUCT = ROOT / "server" / "gradsight"
LIBRARY_MODELS = "models/"
"""Stand-ins that bear the names of the libraries they speak for."""


def test_no_class_name_stands_twice_in_the_product() -> None:
    assert twice(PRODUCT) == {}


def test_a_name_that_stands_twice_is_noticed(tmp_path: Path) -> None:
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(
            "class Frame:\n    class Inner: ...\n" if name == "one.py" else "class Frame: ...\n"
        )
    assert twice(tmp_path) == {"Frame": ["one.py", "two.py"]}


@pytest.mark.parametrize("text", ["class Frame: ...\n", "def f():\n    class Frame: ...\n"])
def test_a_class_is_found_wherever_it_is_made(text: str, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(text * 2)
    assert twice(tmp_path) == {"Frame": ["one.py", "one.py"]}


def twice(folder: Path) -> dict[str, list[str]]:
    """The class names that are declared more than once below a folder, with the files that do."""
    places: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder).as_posix()
        if place.startswith(LIBRARY_MODELS):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(place)
    return {name: files for name, files in sorted(places.items()) if len(files) > 1}
