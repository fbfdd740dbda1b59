"""GS707 backward-of-module: what the rule makes of single events, and of programs that are alike."""

from __future__ import annotations

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source
from gradsight.rules.backward_of_module import RULE
from tests.rules.single_events import judged

PROGRAM = """
import torch
from torch import nn


class Reverse(nn.Module):
    def forward(self, x):
        return x

    {method}


layer, reverse = nn.Linear(2, 1), Reverse()
out = reverse(layer(torch.ones(1, 2))).sum()
out.backward()
{after}
"""


def codes(method: str, after: str = "") -> list[str]:
    text = PROGRAM.replace("{method}", method).replace("{after}", after)
    return [
        f.code for f in analyze(Source("program.py", text)).findings if f.severity in ("error", "warning")
    ]


def test_an_event_is_told_in_the_words_of_the_user() -> None:
    finding = judged(RULE, "backward-of-module", cls="Reverse")
    assert finding is not None
    assert (finding.code, finding.severity) == ("GS707", "warning")
    assert "`Reverse.backward`" in finding.message


def test_a_backward_that_nobody_calls_is_reported() -> None:
    assert codes("def backward(self, grad):\n        return -grad") == ["GS707"]
    assert codes("def backward(self, grad):\n        scaled = 0.5 * grad\n        return scaled.neg()") == [
        "GS707"
    ]


@pytest.mark.parametrize(
    ("method", "after"),
    [
        ("def backward(self, loss):\n        loss.backward()\n        return loss.item()", ""),
        ("def backward(self, grad):\n        return -grad", "reverse.backward(torch.ones(1, 1))"),
        ("def backward(self):\n        return None", ""),
        ("def reversed(self, grad):\n        return -grad", ""),
    ],
)
def test_a_part_of_a_loop_and_one_that_is_called_are_fine(method: str, after: str) -> None:
    assert codes(method, after) == []
