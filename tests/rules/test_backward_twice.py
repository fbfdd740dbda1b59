"""GS402: the advice fits the way in which a graph is needed again."""

from __future__ import annotations

import pytest

from gradsight.analysis import analyze
from gradsight.model.source import Source

HEAD = "import torch\nw = torch.ones(3, requires_grad=True)\n"
ONCE = "this graph was freed by an earlier `backward()`: add the losses and call it once"
AGAIN = "part of this graph is built once and freed by the first `backward()`: rebuild it each time"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("y = w.exp()\ny.sum().backward()\ny.mean().backward()\n", ONCE),
        ("y = w.exp()\nfor k in range(3):\n    (y * k).sum().backward()\n", AGAIN),
        ("y = w.exp()\ndef act(k):\n    (y * k).sum().backward()\nact(1)\nact(2)\n", AGAIN),
    ],
)
def test_the_advice_fits(program: str, message: str) -> None:
    with pytest.raises(RuntimeError, match="second time"):
        exec(HEAD + program, {})
    found = analyze(Source("a.py", HEAD + program)).findings
    assert [(finding.code, finding.message) for finding in found] == [("GS402", message)]
