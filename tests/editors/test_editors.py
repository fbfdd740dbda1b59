"""Real editors, without a screen: diagnostics, hover, a quick fix applied, and the file on disk is right."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.house.tree import ROOT
from tests.lsp.programs import EMOJI, EMOJI_REPAIRED

pytestmark = pytest.mark.setups

HERE = Path(__file__).parent
EDITORS = {
    "nvim": ["nvim", "--headless", "-u", "NONE", "-n", "-i", "NONE", "-S", str(HERE / "drive_neovim.lua")],
    "emacs": ["emacs", "--batch", "-Q", "-l", str(HERE / "drive_emacs.el")],
}


@pytest.fixture(scope="module")
def installed() -> None:
    """The editors; where they can be installed they are, and otherwise it is said what is missing."""
    outcome = subprocess.run([ROOT / ".ci" / "editors"], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.usefixtures("installed")
def test_neovim_shows_explains_and_repairs(tmp_path: Path) -> None:
    seen = check("nvim", tmp_path)
    assert seen["steps"] == ["diagnostics", "hover", "menu", "fixed", "clean", "stopped"]
    assert seen["diagnostic"]["line"] == 5
    assert seen["diagnostic"]["column"] == len("é = '😀'; ".encode())


@pytest.mark.usefixtures("installed")
def test_emacs_shows_explains_and_repairs(tmp_path: Path) -> None:
    seen = check("emacs", tmp_path)
    assert (seen["line"], seen["marked"]) == (5, "y *= 3")


def check(editor: str, folder: Path) -> dict[str, Any]:
    """Drive an editor through a file with an emoji in front of the hazard; what it saw is given back."""
    assert shutil.which(editor)
    path, answer = folder / "train.py", folder / "answer.json"
    path.write_text(EMOJI, encoding="utf-8")
    environment = {
        **os.environ,
        "GRADSIGHT_SERVER": json.dumps([sys.executable, "-m", "gradsight", "server"]),
        "GRADSIGHT_FILE": str(path),
        "GRADSIGHT_ANSWER": str(answer),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
    }
    outcome = subprocess.run(
        EDITORS[editor], env=environment, cwd=folder, capture_output=True, text=True, timeout=180, check=False
    )
    seen: dict[str, Any] = json.loads(answer.read_text()) if answer.exists() else {}
    assert outcome.returncode == 0, f"{seen.get('failed')}\n{outcome.stdout}\n{outcome.stderr}"
    assert "GS101" in seen["hover"]
    assert "saves its output here" in seen["hover"]
    assert any(title.startswith("GradSight: replace with `y = y ") for title in seen["actions"])
    assert path.read_text(encoding="utf-8") == EMOJI_REPAIRED
    return seen
