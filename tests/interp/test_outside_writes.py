"""A forward that does nothing itself is executed only if it leads to a write to what others made."""

from __future__ import annotations

import ast

import pytest

from gradsight.interp.memory import binders_of
from gradsight.interp.parsing import parse_text
from gradsight.interp.paths.call_graph import CallGraph
from gradsight.interp.paths.entry_kinds import functions_in
from gradsight.interp.paths.made_here import writes_only_to_made
from gradsight.interp.paths.outside_writes import Writers
from gradsight.ops.table import shipped
from tests.interp.checking import check


def is_harmless(text: str) -> bool:
    return writes_only_to_made(ast.parse(text).body[0], shipped()) is not None


@pytest.mark.parametrize(
    "text",
    [
        "def f(h):\n    return h * 2",
        "def f(ids):\n    out = ids.new_zeros(3)\n    out[:, 1:] = ids\n    return out",
        "def f(a, b):\n    h = a + b\n    if b is not None:\n        h += b\n    h = self.norm(h)\n    return h",
        "def f(h):\n    h = h.clone()\n    h.mul_(2)\n    return h",
        "def f(h):\n    out = torch.zeros_like(h)\n    for i in range(3):\n        out.index_add_(0, i, h)\n    return out",
        "def f(h):\n    out = torch.zeros(4, 4)\n    row = out.view(2, 8)\n    row[0] = 1\n    return out",
        "def f(h):\n    total = 0\n    for part in h:\n        total += part\n    return total",
        "def f(h, count: int):\n    count += 1\n    return h",
        "def f(h):\n    parts = [h]\n    parts[0] = h * 2\n    return parts",
        "def f(h, cache):\n    known = cache.seen.get(0)\n    cache.seen[0] = True\n    return h",
        "def f(h):\n    torch.empty_like(h).uniform_(0, 1)\n    return h",
        "def f(h):\n    names = ()\n    names += (h,)\n    return names",
        "def f(x):\n    y = x if x.training else x\n    y = torch.exp(x)\n    y.neg_()\n    return y",
    ],
)
def test_a_function_that_writes_to_what_it_made_harms_nobody(text: str) -> None:
    assert is_harmless(text)


@pytest.mark.parametrize(
    "text",
    [
        "def f(h):\n    h *= 2\n    return h",
        "def f(h):\n    g = h.view(3)\n    g[0] = 1\n    return g",
        "def f(h):\n    g = h\n    if h.training:\n        g = h.clone()\n    g.mul_(2)\n    return g",
        "def f(h):\n    g = h.clone() if h.training else h\n    g.mul_(2)\n    return g",
        "def f(h):\n    parts = [h]\n    parts[0] += 1\n    return parts",
        "def f(h):\n    parts = [h] + [h]\n    parts[0] += 1\n    return parts",
        "def f(parts):\n    for part in parts:\n        part += 1",
        "def f(h):\n    g = torch.zeros(3)\n    for i in range(3):\n        g += 1\n        g = h",
        "def f(self, h):\n    self.state[0] = h",
        "def f(self, h):\n    g = self.clone(h)\n    g += 1",
        "def f(self, h):\n    return torch.relu(h, out=self.room)",
        "def f(h):\n    h.data = h * 2",
        "def f(h):\n    nn.init.zeros_(h)",
        "def f(h):\n    g = h.to(torch.float32)\n    g += 1",
        "def f(h):\n    g = torch.zeros(3)\n    def inner():\n        nonlocal g\n        g = h\n    inner()\n    g += 1",
        "def f(hs):\n    g = torch.zeros(3)\n    return [g.add_(1) for g in hs]",
        "def f(hs):\n    g = torch.zeros(3)\n    return map(lambda g: g.add_(1), hs)",
        "def f(hs):\n    g = torch.zeros(3)\n    def inner(g):\n        g += 1\n    inner(hs)",
        "def f(h):\n    with h as g:\n        g += 1",
        "def f(h):\n    try:\n        g = h.clone()\n    except ValueError:\n        g = h\n    g += 1",
    ],
)
def test_a_function_that_may_write_to_what_it_was_given_may_harm_others(text: str) -> None:
    assert not is_harmless(text)


def may_be_met(text: str, name: str, method: str = "forward") -> bool:
    units = parse_text("model.py", text).units
    calls = CallGraph(function for unit in units for function in functions_in(unit))
    unit = next(one for one in units if getattr(one.tree[0], "name", "") == name)
    function = next(node for node in functions_in(unit) if getattr(node, "name", "") == method)
    return Writers(binders_of(units), calls, shipped()).may_be_met(unit, function)


LAYERS = """
from torch import nn

class Scaling(nn.Module):
    def forward(self, h):
        h *= 2
        return h

class Plain(nn.Module):
    def forward(self, h):
        return h + 1

LAYERS = {"scaling": Scaling}
"""


@pytest.mark.parametrize(
    ("makes", "is_met"),
    [
        ("Scaling()", True),
        ("LAYERS['scaling']()", True),
        ("nn.ReLU(inplace=True)", True),
        ("nn.ReLU(inplace=False)", False),
        ("Plain()", False),
        ("globals()['Scaling']()", True),
    ],
)
def test_a_model_meets_the_writes_of_the_layers_that_its_text_speaks_of(makes: str, is_met: bool) -> None:
    model = f"class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layer = {makes}\n    def forward(self, x):\n        return self.layer(x)\n"
    assert may_be_met(LAYERS + model, "Model") is is_met


def test_a_write_in_a_helper_that_the_forward_of_a_layer_calls_is_met() -> None:
    text = "def scale(h):\n    h *= 2\n    return h\n"
    text += "class Layer(nn.Module):\n    def forward(self, h):\n        return scale(h)\n"
    text += "class Model(nn.Module):\n    def __init__(self):\n        self.layer = Layer()\n    def forward(self, x):\n        return self.layer(x)\n"
    assert may_be_met(text, "Model")


WRITTEN_BY_LAYER = """
import torch
from torch import nn

class Layer(nn.Module):
    def forward(self, hidden):
        {body}
        return hidden

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.layer = Layer()

    def forward(self, x):
        saved = self.lin(x).tanh()
        return saved * self.layer(saved)
"""


def test_a_layer_spoils_what_the_model_saved() -> None:
    check(WRITTEN_BY_LAYER.format(body="hidden *= 2  # GS101"))


def test_a_layer_that_writes_to_what_it_made_spoils_nothing() -> None:
    check(WRITTEN_BY_LAYER.format(body="hidden = hidden * 2; hidden += 1"))
