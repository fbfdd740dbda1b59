"""Writes of NumPy to memory that a tensor shares: reported where they change what backward needs, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gradsight.analysis import analyze
from gradsight.model.source import Source

HEAD = "import torch\nimport numpy as np\nw = torch.full((3,), 0.5, requires_grad=True)\ny = w.sigmoid()\na = y.detach().numpy()\n"
UNCHANGED = [
    "a += 0",
    "a -= 0",
    "a *= 1",
    "a /= 1.0",
    "a[0] *= 1",
    "a[:] = y.detach().numpy()",
    "np.clip(a, 0, 1, out=a)",
    "np.copyto(a, y.detach().numpy())",
    "np.multiply(a, 1.0, out=a)",
    "np.add(a, 0, out=a)",
]
CHANGED = [
    "a += 1",
    "a *= 2",
    "a *= -1",
    "a -= a",
    "a **= 2",
    "a[0] = 3.0",
    "a[:] = 0",
    "a[:] = (w * 3).detach().numpy()",
    "a.fill(3)",
    "np.clip(a, 0, 0.5, out=a)",
    "np.copyto(a, np.zeros(3, dtype='float32'))",
    "np.multiply(a, a, out=a)",
    "np.add(np.ones(3, dtype='float32'), 0, out=a)",
    "np.negative(a, out=a)",
]


@pytest.mark.parametrize("write", [*UNCHANGED, *CHANGED])
def test_an_array_that_keeps_its_numbers_is_not_reported(write: str) -> None:
    text = f"{HEAD}{write}\ny.sum().backward()\n"
    names: dict[str, object] = {}
    exec(text, names)
    half = torch.sigmoid(torch.tensor(0.5))
    gradient = names["w"].grad  # type: ignore[attr-defined]
    assert np.allclose(gradient, half * (1 - half)) == (write in UNCHANGED)
    loud = {one.code for one in analyze(Source("a.py", text)).findings if one.severity != "hint"}
    assert loud == ({"GS104"} if write in CHANGED else set())
