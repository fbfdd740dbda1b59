"""`benchmarks/peers.py` counts what tools say: tried with a tool that says what this test wants."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.house.tree import ROOT

WRONG = "import torch\nw = torch.ones(3, requires_grad=True)\ny = w.exp()\ny *= 2\ny.sum().backward()\n"
RIGHT = WRONG.replace("y *= 2", "y = y * 2")


def test_the_table_counts_what_each_tool_finds_and_where_it_is_wrong(tmp_path: Path) -> None:
    tools, folder = tmp_path / "bin", tmp_path / "programs"
    tools.mkdir()
    folder.mkdir()
    (folder / "wrong.py").write_text(WRONG)
    (folder / "right.py").write_text(RIGHT)
    labels = [
        {"file": "wrong.py", "verdict": "raises", "hazard_lines": [4]},
        {"file": "right.py", "verdict": "safe", "hazard_lines": []},
    ]
    (folder / "labels.json").write_text(json.dumps(labels))
    for name, words in (
        ("torchfix", f"{folder}/right.py:1:1: X1 no"),
        ("ruff", f"{folder}/wrong.py:4:1: X2 yes"),
    ):
        (tools / name).write_text(f"#!/bin/sh\necho '{words}'\n")
        (tools / name).chmod(0o755)
    command = [sys.executable, "benchmarks/peers.py", "--tools", str(tools), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr
    rows = {
        line.split("|")[1].strip(): [each.strip() for each in line.split("|")[2:5]]
        for line in done.stdout.splitlines()
    }
    assert rows["GradSight check"] == ["1 of 1", "0 of 0", "0 of 1"]
    assert rows["TorchFix"] == ["0 of 1", "0 of 0", "1 of 1"]
    assert rows["ruff"] == ["1 of 1", "0 of 0", "0 of 1"]
    assert rows["ty"] == ["not installed", "", ""]
