"""A checkpoint keeps its inputs as they are given: what the function writes to them, backward misses.  Torch says which."""

from __future__ import annotations

import pytest

from gradsight.analysis import analyze
from gradsight.model.source import Source

HEAD = "import torch\nfrom torch.utils.checkpoint import checkpoint\n\nw = torch.ones(3, requires_grad=True)\n\n\n"
WRITES = {
    "before it is saved": "    h.mul_(3.0)\n    return h.exp()\n",
    "after it was saved": "    y = h.exp()\n    h.mul_(3.0)\n    return y\n",
    "by a layer": "    return torch.relu_(h) * 2\n",
    "behind what was saved last": "    y = h.sin().exp()\n    h.mul_(3.0)\n    return y\n",
}
RIGHT = {
    "nothing is saved": ("    h.mul_(3.0)\n    return h + 1\n", False),
    "a tensor of its own": ("    h = h + 1\n    h.mul_(3.0)\n    return h.exp()\n", False),
    "a tensor of its own, reentrant": ("    h = h + 1\n    h.mul_(3.0)\n    return h.exp()\n", True),
    "data beside it, reentrant": ("    data.mul_(0.5)\n    return h.exp()\n", True),
}


def program(body: str, reentrant: bool) -> str:
    call = f"checkpoint(part, w * 1.5, torch.ones(3), use_reentrant={reentrant}).sum().backward()\n"
    return f"{HEAD}def part(h, data):\n{body}\n\n{call}"


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_a_write_to_an_input_is_reported_where_torch_raises(name: str, reentrant: bool) -> None:
    text = program(WRITES[name], reentrant)
    with pytest.raises(RuntimeError, match=r"inplace operation|in-place operation"):
        exec(text, {})
    line = next(number for number, line in enumerate(text.split("\n"), 1) if "_(" in line)
    found = [(each.code, each.span.line, each.severity) for each in analyze(Source("a.py", text)).findings]
    assert ("GS101", line, "error") in found


@pytest.mark.parametrize("name", RIGHT)
def test_what_torch_runs_through_is_not_reported(name: str) -> None:
    text = program(*RIGHT[name])
    exec(text, {})
    assert [each.code for each in analyze(Source("a.py", text)).findings if each.severity == "error"] == []
