"""Whatever torch refuses about gradients, the notes of a watch name the line to look at."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gradsight.session.watch_notes import notes_in
from tests.live.test_watch import notes_of

REFUSED = {
    "out=": (
        """
        w = torch.ones(3, requires_grad=True)
        torch.mul(torch.ones(3), w, out=torch.empty(3))
        """,
        2,
        "GS108",
    ),
    "a hook outside of the graph": (
        """
        w = torch.ones(3, requires_grad=True)
        y = (w * 2).detach()
        y.register_hook(print)
        """,
        2,
        "GS203",
    ),
    "retain_grad without a graph": (
        """
        x = torch.ones(3)
        x.retain_grad()
        """,
        2,
        "GS204",
    ),
    "a hook that changes the size": (
        """
        def halve(grad):
            return grad[:1]
        w = torch.ones(3, requires_grad=True)
        w.register_hook(halve)
        (w * 2).sum().backward()
        """,
        2,
        "GS409",
    ),
    "a derivative of the derivative that is not there": (
        """
        from torch.autograd.function import once_differentiable
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            @once_differentiable
            def backward(ctx, grad):
                return grad * 2
        w = torch.ones(3, requires_grad=True)
        y = (Double.apply(w) ** 2).sum()
        g, = torch.autograd.grad(y, w, create_graph=True)
        g.sum().backward()
        """,
        13,
        "GS205",
    ),
    "detach_ of a view": (
        """
        w = torch.ones(4, requires_grad=True)
        a, b = (w * 2).split(2)
        a.detach_()
        """,
        3,
        "GS103",
    ),
    "resize_": (
        """
        w = torch.ones(4, requires_grad=True)
        w.resize_(2, 2)
        """,
        2,
        "GS102",
    ),
    "a reentrant checkpoint under autograd.grad": (
        """
        from torch.utils.checkpoint import checkpoint
        w = torch.ones(4, requires_grad=True)
        y = checkpoint(torch.tanh, w, use_reentrant=True).sum()
        torch.autograd.grad(y, w)
        """,
        4,
        "GS211",
    ),
    "a checkpoint that computes something else": (
        """
        from torch.utils.checkpoint import checkpoint
        calls = []
        def block(x):
            calls.append(1)
            return x.sin().exp() if len(calls) == 1 else x.sin()
        w = torch.ones(4, requires_grad=True)
        checkpoint(block, w, use_reentrant=False).sum().backward()
        """,
        7,
        "GS101",
    ),
    "two unscales": (
        """
        net = nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        scaler.scale(net(torch.ones(4, 2)).mean()).backward()
        scaler.unscale_(opt)
        scaler.unscale_(opt)
        """,
        6,
        "GS511",
    ),
    "vmap and a tensor of its own": (
        """
        def first(x):
            y = torch.zeros(3)
            y[0] = x.sum()
            return y
        torch.vmap(first)(torch.ones(2, 3))
        """,
        3,
        "GS109",
    ),
    "func.grad of no scalar": (
        """
        torch.func.grad(lambda x: x * 2)(torch.ones(3))
        """,
        1,
        "GS401",
    ),
    "a number as a gradient": (
        """
        w = torch.ones(3, requires_grad=True)
        w.grad = 0
        """,
        2,
        "GS409",
    ),
    "a gradient of another type": (
        """
        w = torch.ones(3, requires_grad=True)
        w.grad = torch.ones(3, dtype=torch.double)
        """,
        2,
        "GS409",
    ),
    "a gradient of another size": (
        """
        w = torch.ones(3, requires_grad=True)
        w.grad = torch.ones(2)
        """,
        2,
        "GS409",
    ),
    "what was saved, read after it was freed": (
        """
        w = torch.ones(3, requires_grad=True)
        y = w.exp().sum()
        node = y.grad_fn.next_functions[0][0]
        y.backward()
        print(node._saved_result)
        """,
        5,
        "GS402",
    ),
    "what was saved, read after it was overwritten": (
        """
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        y *= 2
        print(y.grad_fn.next_functions[0][0]._saved_result)
        """,
        3,
        "GS101",
    ),
    "backward of a number": (
        """
        w = torch.full((3,), 0.123456, requires_grad=True)
        loss = (w * 2).sum().item()
        loss.backward()
        """,
        2,
        "GS202",
    ),
    "an optimizer without parameters": (
        """
        torch.optim.SGD(nn.ReLU().parameters(), lr=0.1)
        """,
        1,
        "GS518",
    ),
    "an operator without derivative": (
        """
        w = torch.ones(3, requires_grad=True)
        y = torch.special.zeta(w, w + 1)
        y.sum().backward()
        """,
        2,
        "GS205",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_notes_name_the_line(tmp_path: Path, name: str) -> None:
    text, line, code = REFUSED[name]
    notes = notes_of(tmp_path, dedent(text).lstrip())
    (note,) = notes_in(notes)
    assert note.code == code
    assert line in [step.line for step in note.steps], notes
