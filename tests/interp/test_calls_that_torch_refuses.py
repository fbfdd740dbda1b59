"""Calls that torch refuses at once: each program is run on torch, and the line that raises, or causes it, is reported."""

from __future__ import annotations

import textwrap

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source

START = "import torch\nfrom torch import nn\nfrom torch.autograd import Function\n"
LOUD = ("error", "warning")


def lines_of(text: str) -> list[int]:
    found = analyze(Source("program.py", text)).findings
    return [finding.span.line for finding in found if finding.severity in LOUD]


def check(program: str, message: str | None) -> None:
    """The line that ends in `# here` is reported if torch is to say the message; nothing is where it runs."""
    text = START + textwrap.dedent(program)
    expected = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# here")]
    scope = {"__name__": "__main__"}
    if message is None:
        exec(compile(text, "program.py", "exec"), scope)
        assert lines_of(text) == []
        return
    with pytest.raises(Exception, match=message):
        exec(compile(text, "program.py", "exec"), scope)
    assert set(expected) & set(lines_of(text)), lines_of(text)


REFUSED = {
    "no inputs": (
        "x = torch.ones(3, requires_grad=True)\n(x * 2).sum().backward(inputs=[])  # here",
        "cannot be empty",
    ),
    "a number as gradient": ("x = torch.ones(3, requires_grad=True)\nx.grad = 0.0  # here", "to be a Tensor"),
    "a hook that returns a number": (
        "x = torch.ones(3, requires_grad=True)\ny = x * 2\ny.register_hook(lambda g: 2.0)  # here\ny.sum().backward()",
        "hook",
    ),
    "a hook for what a result accumulates": (
        "x = torch.ones(3, requires_grad=True)\ny = x * 2\ny.register_post_accumulate_grad_hook(print)  # here",
        "leaf",
    ),
    "the gradient of a vector": (
        "from torch.func import grad\n\ngrad(lambda x: x.sin())(torch.ones(3))  # here",
        "scalar",
    ),
    "an optimizer without parameters": ("torch.optim.SGD([], lr=0.1)  # here", "empty parameter list"),
    "a parameter in two groups": (
        (
            "x = torch.ones(3, requires_grad=True)\n"
            'torch.optim.SGD([{"params": [x]}, {"params": [x]}], lr=0.1)  # here'
        ),
        "more than one parameter group",
    ),
    "a reentrant checkpoint asked for one input": (
        (
            "from torch.utils.checkpoint import checkpoint\n\n"
            "x = torch.ones(1, 2, requires_grad=True)\n"
            "y = checkpoint(nn.Linear(2, 2), x, use_reentrant=True)\n"
            "y.sum().backward(inputs=[x])  # here"
        ),
        "incompatible",
    ),
}

FUNCTION = """
class Twice(Function):
    @staticmethod
    def forward(ctx, x):
        {forward}

    @staticmethod
    {decorator}
    def backward(ctx, grad):
        {backward}


x = torch.ones(3, requires_grad=True)
y = Twice.apply(x * 1)
{end}
"""


def function(
    forward: str = "return x * 2",
    backward: str = "return grad * 2",
    end: str = "y.sum().backward()",
    decorator: str = "# plain",
) -> str:
    return FUNCTION.format(forward=forward, backward=backward, end=end, decorator=decorator)


REFUSED_FUNCTIONS = {
    "a number from backward": (function(backward="return 2.0  # here"), "expected Variable"),
    "a write to a view that forward made": (
        function(forward="return x.view_as(x)", end="y.add_(1)  # here"),
        "custom Function",
    ),
    "a write to an input that forward handed on": (
        function(forward="return x", end="y.add_(1)  # here"),
        "view",
    ),
    "a number that is saved": (
        function(forward="ctx.save_for_backward(x, 2.0)  # here\n        return x * 2"),
        "can only save",
    ),
    "a marked input that is not returned": (
        function(forward="ctx.mark_dirty(x)  # here\n        x.mul_(2)\n        return x + 1"),
        "marked as dirty",
    ),
    "a second derivative": (
        function(
            backward="return grad * 2",
            decorator="@torch.autograd.function.once_differentiable",
            end="g, = torch.autograd.grad(y.pow(2).sum(), x, create_graph=True)\ng.sum().backward()  # here",
        ),
        "differentiate twice",
    ),
}

SAFE = {
    "some inputs": "x = torch.ones(3, requires_grad=True)\n(x * 2).sum().backward(inputs=[x])",
    "the gradient of a sum": "from torch.func import grad\n\ngrad(lambda x: x.sin().sum())(torch.ones(3))",
    "a hook of a leaf": "x = torch.ones(3, requires_grad=True)\nx.register_post_accumulate_grad_hook(print)",
    "the other checkpoint": (
        "from torch.utils.checkpoint import checkpoint\n\n"
        "x = torch.ones(1, 2, requires_grad=True)\n"
        "y = checkpoint(nn.Linear(2, 2), x, use_reentrant=False)\n"
        "torch.autograd.grad(y.sum(), x)"
    ),
    "a checkpoint beside the way": (
        "from torch.utils.checkpoint import checkpoint\n\n"
        "x, z = torch.ones(1, 2, requires_grad=True), torch.ones(1, 2, requires_grad=True)\n"
        "y = checkpoint(nn.Linear(2, 2), x, use_reentrant=True)\n"
        "torch.autograd.grad(y.sum() + (z * z).sum(), z)"
    ),
    "a write to what forward computed": function(end="y.add_(1)\ny.sum().backward()"),
    "a write to a clone of a view": function(
        forward="return x.view_as(x)", end="z = y.clone()\nz.add_(1)\nz.sum().backward()"
    ),
    "a write with grad mode off to the input": function(
        forward="return x.view_as(x)", end="with torch.no_grad():\n    z = y + 1\n    z.add_(1)"
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_torch_refuses_and_the_line_is_reported(name: str) -> None:
    check(*REFUSED[name])


@pytest.mark.parametrize("name", REFUSED_FUNCTIONS)
def test_what_a_custom_function_may_not_do_is_reported(name: str) -> None:
    check(*REFUSED_FUNCTIONS[name])


@pytest.mark.parametrize("name", SAFE)
def test_what_torch_accepts_is_not_reported(name: str) -> None:
    check(SAFE[name], None)
