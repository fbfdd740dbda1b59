"""Ranks of a distributed program: one report, with what is common and what is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gradsight.live.ranks import merged

PROGRAM = """
import os, sys
import torch
import torch.distributed as dist
from torch import nn
import gradsight

rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
net, unused, spare = nn.Linear(3, 1), nn.Linear(3, 1), nn.Linear(3, 1)
optimizer = torch.optim.SGD([*net.parameters(), *unused.parameters(), *spare.parameters()], lr=0.1)
with gradsight.watch(report=False):
    for _ in range(2):
        optimizer.zero_grad()
        loss = net(torch.ones(4, 3)).mean() + (1 - rank) * spare(torch.ones(4, 3)).mean()
        loss.backward()
        optimizer.step()
    report = gradsight.report(all_ranks=True)
print(report)
dist.destroy_process_group()
"""


def words(*faults: str, steps: int = 3, host: str = "a", untrained: str = "") -> dict[str, object]:
    parameters = [[name, "no gradient in any of 3 steps", "x.py:9"] for name in untrained.split()]
    return {"faults": list(faults), "parameters": parameters, "remarks": [], "steps": steps, "host": host}


def test_what_all_say_is_said_once_and_the_rest_by_rank() -> None:
    report = merged(
        {0: words("one fault\n  here x.py:1"), 1: words("one fault\n  here x.py:1", "another")}, 2
    )
    assert report.common == ("one fault", "  here x.py:1")
    assert report.by_ranks == {(1,): ("another",)}
    assert str(report).splitlines() == [
        "all ranks: one fault",
        "  here x.py:1",
        "rank 1: another",
        "gradsight: 2 problems, 3 optimizer steps watched in each of 2 ranks",
    ]


def test_a_rank_with_one_more_parameter_agrees_on_the_others() -> None:
    report = merged(
        {
            0: words(untrained="a b"),
            1: words(untrained="b a"),
            2: words(untrained="a b c"),
            3: words(untrained="a b c"),
        },
        4,
    )
    assert str(report).splitlines()[:2] == [
        "all ranks: `a`, `b`: no gradient in any of 3 steps (x.py:9)",
        "ranks 2, 3: `c`: no gradient in any of 3 steps (x.py:9)",
    ]
    assert report.problems == 2


def test_many_ranks_are_named_by_their_runs() -> None:
    report = merged({rank: words("one fault") if rank not in (1, 6) else words() for rank in range(8)}, 12)
    assert str(report).splitlines()[:2] == [
        "ranks 0, 2 to 5, 7: one fault",
        "note: ranks 8 to 11 have not reported",
    ]


def test_a_rank_that_did_not_speak_is_named() -> None:
    report = merged({0: words(), 2: words(steps=4, host="b")}, 3)
    assert "note: rank 1 has not reported" in str(report)
    assert "3 to 4 optimizer steps watched in each of 2 ranks on 2 nodes" in str(report)
    assert not report.is_clean


@pytest.mark.setups
def test_two_ranks_meet_in_the_store_of_torch(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    ranks = [
        subprocess.Popen(
            [sys.executable, str(program), str(rank), str(tmp_path / "store")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=300) for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0], said
    together = said[0][0]
    assert "all ranks: `unused.weight`, `unused.bias`: no gradient in any of 2 steps" in together
    assert "rank 1: `unused.weight`" not in together
    assert "rank 1: `spare.weight`, `spare.bias`: the gradient was zero in all of 2 steps" in together
    assert "2 optimizer steps watched in each of 2 ranks" in together


TORCHRUN = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
import gradsight

dist.init_process_group("gloo")
net, unused = DistributedDataParallel(nn.Linear(3, 1)), nn.Linear(3, 1)
optimizer = torch.optim.SGD([*net.parameters(), *unused.parameters()], lr=0.1)
with gradsight.watch():
    for _ in range(2):
        optimizer.zero_grad()
        net(torch.ones(4, 3)).mean().backward()
        optimizer.step()
dist.destroy_process_group()
"""


@pytest.mark.setups
def test_the_end_of_the_block_under_torchrun_prints_one_report(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(TORCHRUN)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        str(program),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "gradsight: " in line]
    assert said == ["gradsight: 1 problem, 2 optimizer steps watched in each of 2 ranks"], done.stderr
    assert done.stderr.count("all ranks: `unused.weight`, `unused.bias`: no gradient in any of 2 steps") == 1
