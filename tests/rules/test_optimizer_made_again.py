"""GS521 optimizer-made-again: what the rule makes of single events, and of programs that are alike."""

from __future__ import annotations

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source
from gradsight.rules.optimizer_made_again import RULE
from tests.rules.single_events import judged

PROGRAM = """
import copy

import torch
from torch import nn

model = nn.Linear(3, 1)
start = copy.deepcopy(model.state_dict())
for batch in torch.rand(4, 5, 3):
    {first}
    optimizer = torch.optim.{made}
    for _ in range({rounds}):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
"""


def codes(made: str, first: str = "pass", rounds: int = 1) -> list[str]:
    text = PROGRAM.replace("{first}", first).replace("{made}", made).replace("{rounds}", str(rounds))
    return [
        f.code for f in analyze(Source("program.py", text)).findings if f.severity in ("error", "warning")
    ]


def test_an_event_is_told_in_the_words_of_the_user() -> None:
    finding = judged(RULE, "optimizer-made-again", optimizer="optimizer", made="Adam")
    assert finding is not None
    assert (finding.code, finding.severity) == ("GS521", "warning")
    assert "`optimizer` is made in every iteration" in finding.message


@pytest.mark.parametrize(
    "made", ["Adam(model.parameters(), lr=0.1)", "SGD(model.parameters(), lr=0.1, momentum=0.9)"]
)
def test_averages_that_begin_again_are_reported(made: str) -> None:
    assert codes(made) == ["GS521"]


@pytest.mark.parametrize(
    ("made", "first", "rounds"),
    [
        ("SGD(model.parameters(), lr=0.1)", "pass", 1),
        ("Adam(model.parameters(), lr=0.1)", "pass", 3),
        ("Adam(model.parameters(), lr=0.1)", "model.load_state_dict(start)", 1),
        ("Adam(model.parameters(), lr=0.1)", "model = nn.Linear(3, 1)", 1),
    ],
)
def test_a_new_beginning_that_is_meant_is_fine(made: str, first: str, rounds: int) -> None:
    assert codes(made, first, rounds) == []
