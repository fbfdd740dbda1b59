"""A dropout whose probability is read from settings: what the class of the settings says by default."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

ATTENTION = """
from dataclasses import dataclass

@dataclass
class NetConfig:
    width: int = 8
    attention_dropout: float = 0.0
    hidden_dropout: float = 0.1

class OldConfig:
    def __init__(self, width=8, attention_dropout=0.0, *, hidden_dropout=0.1):
        self.attention_dropout = attention_dropout
        self.hidden_dropout = hidden_dropout

def attend(module, scores, values, dropout: float = 0.0):
    weights = F.softmax(scores, dim=-1)
    weights = F.dropout(weights, p=dropout, training=module.training, inplace=True)  # GS101
    return weights @ values

class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.rate = config.hidden_dropout
        self.score = nn.Linear(config.width, config.width)
        self.value = nn.Linear(config.width, config.width)

    def forward(self, x):
        rate = 0.0 if not self.training else self.rate
        return attend(self, self.score(x), self.value(x), dropout=rate)
"""


@pytest.mark.parametrize("declared", ["config", "config: NetConfig"])
def test_a_dropout_that_is_off_by_default_writes_nothing(declared: str) -> None:
    program = ATTENTION.replace("(self, config)", f"(self, {declared})")
    check(program.replace("config.hidden_dropout", "config.attention_dropout").replace("  # GS101", ""))


@pytest.mark.parametrize("declared", ["config", "config: NetConfig"])
def test_a_dropout_that_is_on_by_default_overwrites_what_softmax_saved(declared: str) -> None:
    check(ATTENTION.replace("(self, config)", f"(self, {declared})"))


def test_classes_that_disagree_leave_a_dropout_at_work() -> None:
    program = ATTENTION.replace("width=8, attention_dropout=0.0", "width=8, attention_dropout=0.2")
    check(program.replace("config.hidden_dropout", "config.attention_dropout"))
