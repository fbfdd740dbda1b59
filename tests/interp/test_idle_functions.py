"""Functions that can show nothing when they are executed by themselves are not executed; those that can are."""

from __future__ import annotations

import ast

import pytest

from gradsight.interp.paths.call_graph import CUT, WRITE, CallGraph, summary_of
from gradsight.interp.paths.idle_functions import is_idle

HELPERS = """
class Model:
    def helper(self, x):
        x.mul_(2)
    @property
    def gate(self):
        self.state.mul_(2)
    @torch.no_grad()
    def _init_weights(self, module):
        init.zeros_(module.bias)
"""


def idle(text: str, others: str = HELPERS) -> bool:
    function = ast.parse(text).body[0]
    nodes = [function, *(node for node in ast.walk(ast.parse(others)) if isinstance(node, ast.FunctionDef))]
    return is_idle(function, CallGraph(nodes))


@pytest.mark.parametrize(
    "text",
    [
        "def get_input_embeddings(self):\n    return self.embeddings.word",
        "def set_input_embeddings(self, value):\n    self.embeddings.word = value",
        "@torch.jit.ignore\ndef no_weight_decay(self):\n    return {'pos'}",
        "def sizes(self):\n    return len(self.blocks), int(self.scale)",
        "@torch.no_grad()\ndef _init_weights(self, module):\n    init.normal_(module.weight)",
        "@torch.no_grad()\ndef _init_weights(self, module):\n    super()._init_weights(module)\n    nn.init.ones_(module.scale)",
    ],
)
def test_what_applies_nothing_or_only_initialises_is_idle(text: str) -> None:
    assert idle(text)


@pytest.mark.parametrize(
    "text",
    [
        "def forward(self, x):\n    return self.act(x)",
        "def read(self):\n    return self.gate",
        "@wrapped\ndef read(self):\n    return self.embeddings",
        "def forward(self, x):\n    with self.mode:\n        return x",
        # Grad mode is on: torch refuses to write leaves.
        "def _init_weights(self, module):\n    init.normal_(module.weight)\n    module.weight.mul_(2)",
        "@torch.no_grad()\ndef _init_weights(self, module):\n    module.weight.mul_(2)",
        "@torch.no_grad()\ndef _init_weights(self, module):\n    init.zeros_(module.bias)\n    self.helper(module.bias)",
        "@torch.no_grad()\ndef update(self, x):\n    init.zeros_(x)\n    return x",
        "@torch.no_grad()\ndef update(self, x):\n    init.zeros_(x)\n    x += 1",
        "@torch.no_grad()\ndef update(self, x):\n    init.zeros_(x)\n    x[0] = 1",
    ],
)
def test_what_may_write_or_apply_something_is_not_idle(text: str) -> None:
    assert not idle(text)


@pytest.mark.parametrize(
    ("text", "writes"),
    [
        ("states += (hidden,)", False),
        ("text += 'more'", False),
        ("options['mask'] = mask", False),
        ("hidden += residual", True),
        ("hidden[0] = 0", True),
        ("hidden[name] = 0", True),
    ],
)
def test_tuples_and_texts_are_not_written_as_tensors_are(text: str, writes: bool) -> None:
    function = ast.parse(f"def f(hidden):\n    {text}").body[0]
    assert (WRITE in summary_of(function).reasons) is writes


@pytest.mark.parametrize(
    ("text", "cuts"),
    [
        ("def f(x, scale: float = 1.0):\n    return x * scale", False),
        ("def f(x):\n    return x.float()", False),
        ("def f(x):\n    return x.to(torch.float)", False),
        ("def f(x):\n    return float(x)", True),
        ("def f(x):\n    return x.detach()", True),
    ],
)
def test_float_cuts_where_it_makes_a_number(text: str, cuts: bool) -> None:
    assert (CUT in summary_of(ast.parse(text).body[0]).reasons) is cuts
