"""The set-ups for Neovim, Emacs and Kate, word by word as the manual has them, in the real editors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import blocks
from tests.docs.kate import Kate
from tests.house.tree import ROOT
from tests.lsp.programs import HAZARD

pytestmark = pytest.mark.setups

HERE = Path(__file__).parent
PAGE = "docs/editors.md"
PROBE_LUA, PROBE_LISP = "init.lua, a command that runs the file", "init.el, a command that runs the file"
# Debian keeps eglot for older versions of Emacs apart.
FIND_EGLOT = """(require 'package)
(add-to-list 'package-directory-list "/usr/share/emacs/site-lisp/elpa")
(package-initialize)
"""


def install(*names: str) -> None:
    """The editors; where they can be installed they are, and otherwise it is said what is missing."""
    outcome = subprocess.run([ROOT / ".ci" / "editors", *names], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr


@pytest.fixture(scope="module")
def installed() -> None:
    install()


@pytest.fixture(scope="module")
def installed_kate() -> None:
    install("kate")


def written(language: str, title: str) -> str:
    """The block with this title."""
    [block] = [block for block in blocks(language, page=PAGE) if block.title == title]
    return block.text


def check(command: list[str], folder: Path) -> dict[str, Any]:
    """Run an editor on a file with a hazard; it sees the finding, and torch confirms it."""
    answer = folder / "answer.json"
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    environment = {
        **os.environ,
        "PATH": path,
        "GRADSIGHT_ANSWER": str(answer),
        "GRADSIGHT_FILE": str(folder / "train.py"),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
    }
    (folder / "train.py").write_text(HAZARD)
    (folder / "pyproject.toml").write_text("")
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    seen: dict[str, Any] = json.loads(answer.read_text()) if answer.exists() else {}
    assert done.returncode == 0, f"{seen}\n{done.stdout}\n{done.stderr}"
    assert "the output of `exp`" in seen["found"]
    assert "confirmed on torch" in seen["verdict"]
    return seen


def neovim(folder: Path, *parts: str) -> dict[str, Any]:
    init = folder / "init.lua"
    init.write_text("\n".join(parts))
    command = ["nvim", "--headless", "-u", str(init), "-n", "-i", "NONE", str(folder / "train.py")]
    return check([*command, "-c", f"luafile {HERE / 'drive_setup.lua'}"], folder)


@pytest.mark.usefixtures("installed")
def test_the_setup_for_neovim(tmp_path: Path) -> None:
    seen = neovim(tmp_path, written("lua", "init.lua, Neovim 0.7 and later"), written("lua", PROBE_LUA))
    assert seen["options"] == {"interpreter": "python3"}
    assert seen["servers"] == 1


@pytest.mark.usefixtures("installed")
def test_the_setup_for_newer_neovim(tmp_path: Path) -> None:
    newer = (HERE / "newer_neovim.lua").read_text()
    setup = written("lua", "init.lua, Neovim 0.11 and later")
    seen = neovim(tmp_path, newer, setup, written("lua", PROBE_LUA))
    assert seen["options"] == {"interpreter": "python3"}


@pytest.mark.usefixtures("installed")
def test_the_setup_for_emacs(tmp_path: Path) -> None:
    init = tmp_path / "init.el"
    init.write_text(FIND_EGLOT + written("lisp", "init.el") + written("lisp", PROBE_LISP))
    check(["emacs", "--batch", "-Q", "-l", str(init), "-l", str(HERE / "drive_setup.el")], tmp_path)


@pytest.mark.usefixtures("installed_kate")
def test_the_setup_for_kate(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    (project / "pyproject.toml").write_text("")
    program = project / "models" / "train.py"
    program.write_text(HAZARD)
    kate = Kate(tmp_path / "home", written("json", "User Server Settings"))
    asked, told = kate.open(program, until="textDocument/publishDiagnostics")
    [initialize] = [each["params"] for each in asked if each.get("method") == "initialize"]
    assert initialize["initializationOptions"] == {"interpreter": "python3"}
    assert initialize["rootUri"] == project.as_uri()
    [opened] = [each["params"] for each in asked if each.get("method") == "textDocument/didOpen"]
    assert opened["textDocument"]["languageId"] == "python"
    [shown] = [each["params"] for each in told if each.get("method") == "textDocument/publishDiagnostics"]
    assert (shown["uri"], [each["code"] for each in shown["diagnostics"]]) == (program.as_uri(), ["GS101"])
