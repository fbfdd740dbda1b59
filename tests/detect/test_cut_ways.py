"""Ways of a gradient that are cut while another one is left: past a layer, and through a step of fast weights."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source

TRAINING = """
net = nn.Sequential(nn.Linear(3, 4), Block(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    net(torch.randn(5, 3)).pow(2).mean().backward()
    optimizer.step()
"""
INNER = """
import torch
from torch import nn

weight = nn.Parameter(torch.randn(4, 1))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(2):
    x, y = torch.randn(5, 4), torch.randn(5, 1)
    inner = (x @ weight - y).pow(2).mean()
"""
OUTER = """
    loss = (x @ fast - y).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def block(skip: str, result: str) -> str:
    return (
        dedent(
            f"""
        import torch
        from torch import nn

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.f = nn.LayerNorm(4), nn.Linear(4, 4)

            def forward(self, x):
                skip = {skip}
                return {result}
        """
        )
        + TRAINING
    )


def check(text: str, *expected: tuple[str, int]) -> None:
    alarms = [
        (finding.code, finding.span.line)
        for finding in analyze(Source("program.py", text)).findings
        if finding.severity in ("error", "warning")
    ]
    assert alarms == list(expected)


@pytest.mark.parametrize("skip", ["x.detach()", "x.clone().detach()", "x.detach().clone()", "x.data"])
def test_a_way_past_a_layer_that_is_cut_is_reported(skip: str) -> None:
    check(block(skip, "self.f(self.norm(x)) + skip"), ("GS203", 11))


@pytest.mark.parametrize(
    ("skip", "result"),
    [
        ("x.clone()", "self.f(self.norm(x)) + skip"),
        # A gradient that is scaled: what is cut stands beside the value itself.
        ("x.detach()", "self.f(self.norm(0.5 * x + 0.5 * skip))"),
        # Straight through: the value of one, the gradient of the other.
        ("(x.round() - x).detach()", "self.f(self.norm(x + skip))"),
        # What the layer adds is compared with what it was given.
        ("x.detach()", "(self.f(self.norm(x)) - skip) * x"),
    ],
)
def test_what_only_looks_like_a_cut_way_is_silent(skip: str, result: str) -> None:
    check(block(skip, result))


def test_a_step_of_fast_weights_without_a_graph_is_reported() -> None:
    step = "    (slope,) = torch.autograd.grad(inner, weight)\n    fast = weight - 0.4 * slope"
    check(INNER + step + OUTER, ("GS405", 10))


@pytest.mark.parametrize("said", ["create_graph=True", "create_graph=False", "**options"])
def test_a_step_whose_graph_was_thought_of_is_silent(said: str) -> None:
    step = f"    (slope,) = torch.autograd.grad(inner, weight, {said})\n    fast = weight - 0.4 * slope"
    check("options = {}\n" + (INNER + step + OUTER).lstrip())


def test_an_attack_on_the_data_needs_no_graph() -> None:
    check(
        dedent("""
        import torch
        from torch import nn

        net = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            x, y = torch.randn(5, 4, requires_grad=True), torch.randint(0, 2, (5,))
            (slope,) = torch.autograd.grad(nn.functional.cross_entropy(net(x), y), x)
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x + 0.1 * slope), y).backward()
            optimizer.step()
        """)
    )
