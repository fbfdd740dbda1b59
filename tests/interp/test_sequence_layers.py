"""Layers over sequences: what `batch_first` copies may be overwritten, and what was packed has its numbers in `.data`."""

from __future__ import annotations

from typing import Any

import pytest

from gradsight.analysis import analyze
from gradsight.model.source import Source

HEAD = """import torch
from torch import nn
import torch.nn.functional as F

x = torch.randn(2, 7, 4, requires_grad=True)
z, k = x * 2, x * 3
head = nn.Linear(8, 1)
"""
RAISES = {
    "what a Linear makes of a GRU's result": "out, h = nn.GRU(4, 8)(x)\ny = head(out)\nout += 1\n",
    "… that was copied": "out, h = nn.GRU(4, 8, batch_first=True)(x)\nout = out.contiguous()\ny = head(out)\nout += 1\n",
    "… of one step": "out, h = nn.GRU(4, 8, batch_first=True)(x[:, :1])\ny = head(out)\nout += 1\n",
    "… of the last step": "out, h = nn.LSTM(4, 8, batch_first=True)(x)\nlast = out[:, -1]\ny = head(last)\nlast += 1\n",
    "… of a sequence without a batch": "out, h = nn.GRU(4, 8, batch_first=True)(x[0])\ny = head(out)\nout += 1\n",
    "an LSTM's own result": "out, h = nn.LSTM(4, 8, batch_first=True)(x)\ny = out.exp()\nout += 1\n",
    "an input": "y, h = nn.LSTM(4, 8, bidirectional=True)(z)\nz += 1\n",
    "a query": "y, w = nn.MultiheadAttention(4, 2)(z, k, k)\nz += 1\n",
    "a key": "y, w = nn.MultiheadAttention(4, 2)(z, k, k)\nk += 1\n",
    "a query of one step": "z = torch.ones(2, 1, 4, requires_grad=True) * 2\ny, w = nn.MultiheadAttention(4, 2, batch_first=True)(z, k, k)\nz += 1\n",
}
RUNS = {
    "what a Linear makes of a GRU's result": "out, h = nn.GRU(4, 8, batch_first=True)(x)\ny = head(out)\nout += 1\n",
    "… of a dropout": "out, h = nn.LSTM(4, 8, batch_first=True)(x)\nout = F.dropout(out)\ny = head(out)\nout += 1\n",
    "an input": "y, h = nn.LSTM(4, 8, batch_first=True, bidirectional=True)(z)\nz += 1\n",
    "a query": "y, w = nn.MultiheadAttention(4, 2, batch_first=True)(z, k, k)\nz += 1\n",
    "a key": "y, w = nn.MultiheadAttention(4, 2, batch_first=True)(z, k, k)\nk += 1\n",
    "a key that is named": "y, w = nn.MultiheadAttention(4, 2, batch_first=True)(z, key=k, value=k)\nk += 1\n",
    "what a Linear makes of attention": "out, w = nn.MultiheadAttention(4, 2, batch_first=True)(x, x, x)\ny = nn.Linear(4, 1)(out)\nout += 1\n",
}
PACKED = {
    "its numbers": "out, h = rnn(packed)\nloss = head(out.data).sum()\n",
    "its first part": "out, h = rnn(packed)\nloss = head(out[0]).sum()\n",
    "its padded form": "out, h = rnn(packed)\nloss = head(pad_packed_sequence(out)[0]).sum()\n",
    "what it is made of": "loss = packed.data.sum()\n",
}


def reported(text: str) -> list[str]:
    return [
        each.code for each in analyze(Source("a.py", text)).findings if each.severity in ("error", "warning")
    ]


@pytest.mark.parametrize("name", RAISES)
def test_a_write_to_what_is_saved_is_reported(name: str) -> None:
    text = f"{HEAD}{RAISES[name]}y.sum().backward()\n"
    with pytest.raises(RuntimeError, match="inplace operation"):
        exec(text, {})
    assert reported(text) == ["GS101"]


@pytest.mark.parametrize("name", RUNS)
def test_a_write_to_what_was_copied_is_not(name: str) -> None:
    text = f"{HEAD}{RUNS[name]}y.sum().backward()\n"
    exec(text, {})
    assert reported(text) == []


@pytest.mark.parametrize("name", PACKED)
def test_the_numbers_of_a_packed_sequence_are_in_the_graph(name: str) -> None:
    text = (
        f"{HEAD}from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence\n"
        "rnn = nn.LSTM(4, 8, batch_first=True)\n"
        f"packed = pack_padded_sequence(z, [7, 5], batch_first=True)\n{PACKED[name]}loss.backward()\n"
    )
    names: dict[str, Any] = {}
    exec(text, names)
    assert names["x"].grad is not None
    assert reported(text) == []


def test_what_a_module_is_given_may_be_packed() -> None:
    text = """import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.fc = nn.Embedding(10, 4), nn.LSTM(4, 8), nn.Linear(8, 10)

    def forward(self, packed):
        out, _ = self.rnn(packed)
        return self.fc(out.data)


def train(loader):
    net = Decoder()
    opt = torch.optim.Adam(net.parameters())
    for packed, target in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(net(packed), target).backward()
        opt.step()
"""
    assert reported(text) == ["GS517"]
    assert reported(text.replace("self.rnn(packed)", "self.rnn(self.emb(packed))")) == ["GS203"]
