"""Every Python program of the manual is run by torch, and GradSight never fails on one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradsight.analysis import analyze
from gradsight.model.source import Source
from tests.docs.blocks import Block, blocks, pages
from tests.house.tree import ROOT

PROGRAMS = blocks("python")
# Programs that show how torch fails; the commands around them say what happens.
FAILING = {"train.py"}
RUN_ALL = """
import contextlib, io, sys, traceback, warnings
for path in sys.argv[1:]:
    warnings.simplefilter("ignore")
    namespace = {"__name__": "__main__", "__file__": path}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(open(path, encoding="utf-8").read(), path, "exec"), namespace)
    except BaseException:
        traceback.print_exc()
        print("failed:", path)
"""


def test_every_page_of_claims_has_programs() -> None:
    myths = [block for block in PROGRAMS if block.page == "docs/myths.md"]
    headings = [line for line in (Path("docs/myths.md")).read_text().splitlines() if line.startswith("## ")]
    assert len(headings) >= 15
    assert len(myths) >= len(headings)
    assert all("assert " in block.text for block in myths)


def test_torch_runs_every_program(tmp_path: Path) -> None:
    """One process for all of them: importing torch is most of the time."""
    files = {}
    for number, block in enumerate(PROGRAMS):
        if block.title not in FAILING:
            path = tmp_path / f"program_{number}.py"
            path.write_text(block.text, encoding="utf-8")
            files[str(path)] = block
    outcome = subprocess.run(
        [sys.executable, "-c", RUN_ALL, *files], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    failed = [
        str(files[line.split(" ", 1)[1]])
        for line in outcome.stdout.splitlines()
        if line.startswith("failed:")
    ]
    assert outcome.returncode == 0, outcome.stderr
    assert not failed, outcome.stderr


@pytest.mark.parametrize("block", PROGRAMS, ids=str)
def test_gradsight_reads_every_program(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSIGHT_STRICT", "1")
    report = analyze(Source("program.py", block.text))
    assert not report.syntax_problems


def test_every_block_is_of_a_kind_that_some_test_executes() -> None:
    # `text` is the table of names, which test_names.py compares with the code; `py` needs a library, with which
    # tests/models/callbacks.py runs it.
    executed = {"console", "sh", "python", "py", "toml", "json", "yaml", "lua", "lisp", "text"}
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in pages())
    fences = re.findall(r"^ *```(.*)$", text, re.MULTILINE)
    opened = [fence.split(" ")[0] for fence in fences[::2]]
    assert set(fences[1::2]) == {""}
    assert set(opened) <= executed
    assert len(opened) == len(blocks(*executed))


def test_every_page_is_looked_at() -> None:
    assert {"README.md", "docs/myths.md", "docs/getting-started.md", "docs/ci.md"} <= set(pages())
