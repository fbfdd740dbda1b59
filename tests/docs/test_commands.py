"""Every command of the manual is run, in a project as the page describes it; what it shows must be said.

Programs that would change the machine are stand-ins which check their arguments.  `make` runs in this repository, where
what it installs is there already; only `make test`, which is the run that this is part of, says what it would do.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.client_e2e.packing import packed
from tests.docs.blocks import Block, blocks, pages
from tests.house.tree import ROOT

pytestmark = pytest.mark.setups

WITH_COMMANDS = [page for page in pages() if blocks("console", "sh", page=page)]
SAFE_PROGRAM = "import torch\n\nx = torch.ones(3, requires_grad=True)\nx.exp().sum().backward()\n"
STAND_INS = {
    # Only this project is ever installed, by its own name.
    "pip": '[ "$1" = install ] && [ "$2" = gradsight ]',
    # What is installed into the editor is what `make vsix` makes.
    "code": f'[ "$1" = --install-extension ] && case $2 in build/gradsight-*.vsix) test -f "{ROOT}/$2" ;; *) exit 9 ;; esac',
}


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_do_what_the_page_says(page: str, tmp_path: Path) -> None:
    prepare(tmp_path, page)
    for block in blocks("console", "sh", page=page):
        for command, expected in commands_of(block):
            outcome = run(command, tmp_path)
            assert outcome.returncode in (0, 1), f"{block}: {command}\n{outcome.stdout}{outcome.stderr}"
            for line in expected:
                assert line in outcome.stdout + outcome.stderr, f"{block}: {command} does not say: {line}"


def commands_of(block: Block) -> list[tuple[str, list[str]]]:
    """The commands of a block with the lines that are shown below each; in a plain shell block every line is one."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if block.language == "sh":
            command = line.split("  #")[0].strip()
            if command and not command.startswith("#"):
                found.append((command, []))
        elif line.startswith("$ "):
            found.append((line[2:], []))
        elif line.strip():
            found[-1][1].append(line)
    return found


def prepare(folder: Path, page: str) -> None:
    """A repository with the files that the page shows, and a package in src/."""
    for block in blocks("python", page=page):
        if block.title.endswith(".py"):
            (folder / block.title).parent.mkdir(exist_ok=True)
            (folder / block.title).write_text(block.text, encoding="utf-8")
    if page == "README.md":
        shutil.copy(ROOT / "client" / "samples" / "first_steps.py", folder)
    (folder / "src").mkdir()
    (folder / "src" / "train.py").write_text(SAFE_PROGRAM)
    chosen = "".join(block.text for block in blocks("toml", page=page) if block.title == "pyproject.toml")
    (folder / "pyproject.toml").write_text(f"[project]\nname = 'example'\n{chosen}")
    programs = folder / ".programs"
    programs.mkdir()
    for name, test in STAND_INS.items():
        (programs / name).write_text(f"#!/bin/sh\n{test}\n")
        (programs / name).chmod(0o755)
    run("git init -q && git add . && git -c user.name=a -c user.email=a@b commit -q -m first", folder)


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command, comments=True)
    if words and words[0] == "make":
        return run_make(*words[1:])
    path = os.pathsep.join([str(folder / ".programs"), os.path.dirname(sys.executable), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    return subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@cache
def run_make(*words: str) -> subprocess.CompletedProcess[str]:
    if words == ("vsix",):
        return subprocess.CompletedProcess(words, 0, f"{packed()}\n", "")
    options = ["-n"] if words == ("test",) else []
    # Made by this run of make, if there is one: its flags are not meant for another.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
    }
    done = subprocess.run(
        ["make", *options, *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_the_demo_goes_as_told_and_leads_to_the_editor() -> None:
    last = run_make("demo").stdout.rsplit("== ", 1)[-1]
    assert last.startswith("In your editor")
    assert "make vscode" in last


def test_the_test_command_is_what_continuous_integration_runs() -> None:
    assert "make -k test" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_every_make_command_in_a_sentence_exists(page: str) -> None:
    targets = re.findall(r"`make ([\w-]+)", (ROOT / page).read_text(encoding="utf-8"))
    assert targets
    known = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [target for target in targets if target not in known] == []
