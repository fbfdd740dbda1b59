"""Repairs that would break the program and are therefore not offered."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradsight.analysis import analyze
from gradsight.fixing import fixes_for
from gradsight.model import Source

HEAD = "import torch\nfrom torch import nn\n\n"


def check(code: str, program: str, unwanted: str) -> None:
    """The finding is there, and no fix for it writes the unwanted text."""
    source = Source("program.py", HEAD + dedent(program))
    report = analyze(source)
    findings = [finding for finding in report.findings if finding.code == code]
    assert findings
    for finding in findings:
        for fix in fixes_for(source, finding, report=report):
            assert not any(unwanted in edit.text for edit in fix.edits), fix.title


def test_options_that_are_spread_may_bring_the_keyword_already() -> None:
    check(
        "GS405",
        """
        w, x = torch.randn(3, requires_grad=True), torch.rand(4, requires_grad=True)
        def derivative(**options):
            return lambda f, *wrt: torch.autograd.grad(f, wrt, torch.ones_like(f), **options)
        u = w.sum() * x ** 3
        (u_x,) = derivative(create_graph=True)(u, x)
        (u_xx,) = derivative(retain_graph=True)(u_x, x)
        (u_x - u_xx).square().mean().backward()
        """,
        "create_graph",
    )


def test_a_module_list_takes_modules_only() -> None:
    check(
        "GS601",
        """
        class Expert:
            def __init__(self):
                self.up = nn.Linear(4, 1)
            def __call__(self, x):
                return self.up(x)
        class Mixture(nn.Module):
            def __init__(self):
                super().__init__()
                self.gate = nn.Linear(4, 2)
                self.experts = tuple(Expert() for _ in range(2))
            def forward(self, x):
                return (self.gate(x) * torch.cat([e(x) for e in self.experts], -1)).sum()
        net = Mixture()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            net(torch.randn(3, 4)).backward()
            opt.step()
        """,
        "ModuleList",
    )


STEPS = """
        x = torch.ones(2, requires_grad=True)
        steps = [torch.exp, lambda y: y.mul_(2), torch.sum, torch.Tensor.backward]
        {}
"""


@pytest.mark.parametrize(
    "runs",
    [
        "for step in steps: x = step(x)",
        "[x := step(x) for step in steps]",
        "functools.reduce(lambda value, step: step(value), steps, x)",
        "run = lambda step: step(x)\n        for one in steps: x = run(one)",
    ],
)
def test_a_call_of_whatever_is_passed_may_give_no_tensor(runs: str) -> None:
    check("GS101", "        import functools" + STEPS.format(runs), ".clone()")


def test_no_other_tensor_helps_a_division_that_torch_cannot_differentiate() -> None:
    check(
        "GS101",
        """
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        y //= 2
        y.sum().backward()
        """,
        "",
    )


def test_a_graph_that_is_built_once_is_not_kept_over_the_steps_of_a_training() -> None:
    check(
        "GS402",
        """
        head = nn.Linear(4, 1)
        log_sigma = torch.zeros(4, requires_grad=True)
        optimizer = torch.optim.SGD([*head.parameters(), log_sigma], lr=0.1)
        sigma = log_sigma.exp()
        for _ in range(3):
            loss = (head(torch.randn(8, 4) * sigma) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        "retain_graph",
    )
