"""What `check` finds in a program joins the report of a run where the run sees no fault by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TRAINING = """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
encoder, decoder, head = nn.Linear(8, 3), nn.Linear(3, 8), nn.Linear(3, 2)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters(), *head.parameters()], lr=0.1)
for _ in range(4):
    x, y = torch.randn(6, 8), torch.randint(0, 2, (6,))
    z = encoder(x)
    LINE
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
PENALTY = "loss = F.mse_loss(decoder(z.detach()), x) + 0.1 * z.pow(2).mean() + 0.0 * head(z).sum()"
TWICE = "loss = F.cross_entropy(head(z).softmax(1), y) + F.mse_loss(decoder(z), x)"
RIGHT = "loss = F.cross_entropy(head(z), y) + F.mse_loss(decoder(z), x)"
UNREACHED = f"loss = F.cross_entropy(head(z).softmax(1), y) if len(x) > 6 else {RIGHT[7:]}"


def ran(folder: Path, line: str, *options: str) -> dict[str, Any]:
    program = folder / "train.py"
    program.write_text(TRAINING.replace("LINE", line))
    words = [sys.executable, "-m", "gradsight", "run", "--format", "json", *options, str(program)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    document: dict[str, Any] = json.loads(done.stdout)
    return {**document, "status": done.returncode}


@pytest.mark.parametrize(("line", "code"), [(TWICE, "GS605"), (PENALTY.split(" + 0.0")[0], "GS203")])
def test_what_only_the_source_tells_is_told_after_a_run(tmp_path: Path, line: str, code: str) -> None:
    document = ran(tmp_path, line)
    told = [(fault["code"], fault["location"]["row"]) for fault in document["faults"]]
    assert (code, 12) in told
    assert (document["outcome"], document["status"]) == ("faults", 1)


@pytest.mark.parametrize("line", [RIGHT, UNREACHED])
def test_what_is_right_or_was_not_reached_is_not(tmp_path: Path, line: str) -> None:
    document = ran(tmp_path, line)
    assert document["faults"] == []
    assert (document["outcome"], document["status"]) == ("clean", 0)


def test_a_fast_run_tells_what_it_saw_alone(tmp_path: Path) -> None:
    assert ran(tmp_path, TWICE, "--fast")["faults"] == []
