"""A result is kept as long as what it used of other files is the same, and says what a fresh check says."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from gradsight import analysis
from gradsight.cli import main

USES = """import torch
from parts import scaled

y = torch.ones(3, requires_grad=True).exp()
scaled(y).sum().backward()
"""
FINE = """import torch
import parts

y = torch.ones(3, requires_grad=True).exp()
parts.doubled(y).sum().backward()
"""
EVERY = USES.replace("from parts import scaled", "from parts import *")
PARTS = """import torch
from sizes import SIZE, unused

FACTOR = 2


def factor():
    return FACTOR


def scaled(value):
    value *= factor()
    return value


def doubled(value):
    return value * SIZE


def spare(value):
    return value.undreamt_of()
"""
SIZES = "SIZE = 2\n\n\ndef unused(value):\n    return value\n"
FILES = {"uses.py": USES, "fine.py": FINE, "every.py": EVERY, "parts.py": PARTS, "sizes.py": SIZES}


@pytest.fixture(autouse=True)
def project(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRADSIGHT_CACHE", raising=False)
    monkeypatch.setenv("GRADSIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("own")))
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\n")


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Checks the project after some files were written: the files that were analysed for it.

    What is said must be what a run without kept results says.
    """
    real = analysis.analyze
    seen: list[str] = []

    def analyze(source: Any, *rest: Any, **named: Any) -> Any:
        seen.append(Path(source.path).name)
        return real(source, *rest, **named)

    def run(files: dict[str, str]) -> set[str]:
        for name, text in files.items():
            Path(name).write_text(text)
        seen.clear()
        capsys.readouterr()
        with monkeypatch.context() as patched:
            patched.setattr(analysis, "analyze", analyze)
            main(["check", "--jobs", "1", "--format", "json", "--gaps"])
        said = capsys.readouterr()
        main(["check", "--jobs", "1", "--format", "json", "--gaps", "--no-cache"])
        assert capsys.readouterr() == said
        return set(seen)

    return run


@pytest.mark.parametrize(
    ("edited", "again"),
    [
        ({"parts.py": PARTS + "\nMORE = 1\n"}, set()),
        ({"parts.py": PARTS.replace("undreamt_of", "other")}, set()),
        ({"parts.py": PARTS.replace("\n\ndef factor", "\n# a note\n\n\ndef more():\n    pass\n\n\ndef factor")}, set()),
        ({"parts.py": PARTS.replace("FACTOR = 2", "FACTOR = 3")}, {"uses.py"}),
        ({"parts.py": PARTS.replace("value *= factor()", "value = value * factor()")}, {"uses.py"}),
        ({"parts.py": PARTS.replace("return value * SIZE", "return value.mul_(SIZE)")}, {"fine.py"}),
        ({"sizes.py": SIZES.replace("return value", "return value.exp()")}, set()),
        ({"sizes.py": SIZES.replace("SIZE = 2", "SIZE = 3")}, {"fine.py"}),
        ({"parts.py": PARTS + "\nprint(1)\n"}, {"uses.py", "fine.py"}),
        ({"parts.py": PARTS.replace("def doubled", "def halved")}, {"fine.py"}),
        ({"parts.py": PARTS + "\n\ndef scaled(value):\n    return value\n"}, {"uses.py"}),
        ({"parts.py": PARTS.replace("import torch\n", "import torch (\n")}, set()),
    ],
)  # fmt: skip
def test_only_what_used_the_edited_part_is_analysed_again(
    checked: Any, edited: dict[str, str], again: set[str]
) -> None:
    # Whoever imports everything, and the edited file itself where torch is in it, are analysed in any case.
    checked(FILES)
    assert checked({}) == set()
    seen = checked(edited)
    anyway = {"parts.py", "every.py"} if "parts.py" in edited else set()
    assert seen - {"every.py"} == (again | anyway) - {"every.py"}
    assert anyway <= seen
    assert checked({}) == set()


def test_a_name_that_was_missing_is_found(checked: Any) -> None:
    files = {**FILES, "fine.py": FINE.replace("parts.doubled", "parts.late")}
    checked(files)
    late = PARTS + "\n\ndef late(value):\n    value *= 2\n    return value\n"
    assert "fine.py" in checked({"parts.py": late})


PIECES = [
    "\nMORE = 1\n",
    "\n\ndef late(value):\n    value *= 2\n    return value\n",
    "\n# note\n\n",
    "\nFACTOR = 4\n",
]
CHANGES = [
    ("value *= factor()", "value = value * factor()"), ("FACTOR = 2", "FACTOR = 3"), ("value * SIZE", "value.mul_(SIZE)"),
    ("undreamt_of", "exp"), ("SIZE = 2", "SIZE = 1\nSIZE = 3"), ("def unused", "def used"), ("def spare", "\n\n\ndef spare"),
    ("return FACTOR", "return FACTOR  # note"),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_any_edits_end_in_what_a_fresh_check_says(checked: Any, seed: int) -> None:
    rng = random.Random(seed)
    checked(FILES)
    files = dict(FILES)
    for _ in range(8):
        name = rng.choice(["parts.py", "sizes.py", "parts.py", "uses.py"])
        text = files[name]
        if rng.random() < 0.5:
            places = [place for place in range(len(text)) if text.startswith("\n\n", place)]
            place = rng.choice(places)
            text = text[:place] + rng.choice(PIECES) + text[place:]
        else:
            old, new = rng.choice(CHANGES)
            text = text.replace(old, new) if old in text else text.replace(new, old)
        files[name] = text
        checked({name: text})


def test_a_program_that_only_starts_others_counts_after_an_edit_elsewhere(checked: Any) -> None:
    net = USES.replace("y = ", "def main():\n    y = ").replace("\nscaled(y)", "\n    scaled(y)")
    checked(
        {
            **FILES,
            "net.py": net,
            "start.py": 'from net import main\n\nif __name__ == "__main__":\n    main()\n',
        }
    )
    assert "start.py" not in checked({"fine.py": FINE + "print(y)\n"})
    assert "start.py" in checked({"net.py": net.replace("exp()", "sigmoid()")})
