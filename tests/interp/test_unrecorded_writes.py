"""Writes that autograd does not record: those that leave the gradient right, and those that do not."""

from __future__ import annotations

from textwrap import dedent

import pytest
import torch

from gradsight.analysis import analyze
from gradsight.model.source import Source

RIGHT = {
    "masked scores": """
        import torch
        x = torch.randn(4, 4, requires_grad=True)
        mask = torch.ones(4, 4).triu(1).bool()
        scores = x * 2
        scores.data.masked_fill_(mask, float("-inf"))
        (scores.softmax(-1) ** 2).sum().backward()
        found, x.grad = x.grad, None
        ((x * 2).masked_fill(mask, float("-inf")).softmax(-1) ** 2).sum().backward()
        assert torch.allclose(found, x.grad)
    """,
    "masked scores by item": """
        import torch
        x = torch.randn(4, 4, requires_grad=True)
        mask = torch.ones(4, 4).triu(1).bool()
        scores = x * 2
        with torch.no_grad():
            scores[mask] = -1e9
        (scores / 3).softmax(-1).pow(2).sum().backward()
    """,
    "smallest number": """
        import torch
        x = torch.randn(4, 4, requires_grad=True)
        scores = x * 2
        scores.data.masked_fill_(scores > 1, torch.finfo(x.dtype).min)
        scores.softmax(-1).pow(2).sum().backward()
    """,
    "other rows": """
        import torch
        x = torch.randn(4, 4, requires_grad=True)
        h = x * 2
        with torch.no_grad():
            h[2:].mul_(3)
        h[:2].pow(2).sum().backward()
    """,
    "a detached shift": """
        import torch
        x = torch.randn(4, requires_grad=True)
        h = x * 2
        h.detach().sub_(1)
        h.data[1:].add_(torch.ones(3))
        h.pow(2).sum().backward()
    """,
    "a factor through data that is passed on": """
        import torch
        y = torch.randn(4, requires_grad=True).relu()
        y.data.mul_(2)
        y.sum().backward()
    """,
    "a factor of what gets a gradient of zero": """
        import torch
        x = torch.randn(3, requires_grad=True)
        w = torch.randn(3)
        y = x * w
        y.copy_(torch.ones(3))
        w.data.mul_(2)
        y.sum().backward()
        assert x.grad.tolist() == [0.0, 0.0, 0.0]
    """,
}
WRONG = {
    "a factor through data": (
        "import torch\nw = torch.ones(3, requires_grad=True)\nh = w * 2\nh.data.mul_(3)\nh.pow(2).sum().backward()\n",
        "GS105",
    ),
    "a factor through a part of data": (
        "import torch\nw = torch.ones(3, requires_grad=True)\nh = w * 2\nh.data[:2].mul_(3)\nh.pow(2).sum().backward()\n",
        "GS105",
    ),
    "a factor through a detached view": (
        "import torch\nw = torch.ones(3, requires_grad=True)\nh = w * 2\nh.detach().view(3).mul_(3)\nh.pow(2).sum().backward()\n",
        "GS105",
    ),
    "a mask of values": (
        "import torch\nw = torch.ones(3, requires_grad=True)\nh = w * 2\nh.data.masked_fill_(h > 1, 0.0)\nh.pow(2).sum().backward()\n",
        "GS105",
    ),
    "a view that is written with grad mode off": (
        "import torch\nw = torch.ones(3, requires_grad=True)\nh = w * 2\npart = h[:2]\nwith torch.no_grad():\n    part.mul_(3)\nh.pow(2).sum().backward()\n",
        "GS105",
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_is_not_reported(name: str) -> None:
    text = dedent(RIGHT[name]).lstrip("\n")
    torch.manual_seed(0)
    exec(compile(text, name, "exec"), {"__name__": "program"})
    assert codes(text) == []


@pytest.mark.parametrize("name", WRONG)
def test_its_faulty_look_alike_is(name: str) -> None:
    text, code = WRONG[name]
    assert codes(text) == [code]


def codes(text: str) -> list[str]:
    found = analyze(Source("program.py", text)).findings
    return [one.code for one in found if one.severity in ("error", "warning")]
