"""Every kind of repair, applied to a small program and run on torch: it ends, with the gradient that was meant."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

import pytest

from gradsight.analysis import analyze
from gradsight.fixing import fixes_for
from gradsight.model import Source, apply_edits
from tests.fixes.checking import PATH, rewritten
from tests.fixes.torch_running import grads_of

HEAD = "import torch\nfrom torch import nn\n\n"


@dataclass(frozen=True)
class Repair:
    """A program, the repair to choose by words of its title, what it must write, and what then comes out as GRADS."""

    name: str
    code: str
    text: str
    title: str
    written: str
    grads: dict[str, object]
    safety: str = "safe"


REPAIRS = [
    Repair("written out of place", "GS101", """
        x = torch.ones(2, requires_grad=True)
        y = x.exp()
        y *= 2
        y.sum().backward()
        GRADS = {"x": x.grad.log()}
    """, "`y = y * 2`", "y = y * 2", {"x": [1.6931, 1.6931]}),
    Repair("cloned before the write", "GS102", """
        x = torch.ones(2, requires_grad=True)
        x[0] = 5.0
        (x * x).sum().backward()
        GRADS = {"x": x.grad}
    """, "clone `x` before this write", "x = x.clone()", {"x": [10.0, 2.0]}, "unsafe"),
    Repair("a clone for the operator", "GS101", """
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        z = y * y
        y.add_(1)
        z.sum().backward()
        GRADS = {"x": x.grad}
    """, "`z = y.clone() * y.clone()`", "y.clone()", {"x": [8.0, 8.0]}),
    Repair("an operator that is passed on", "GS101", """
        from functools import partial, reduce
        x = torch.ones(2, requires_grad=True)
        steps = [torch.exp, partial(torch.clamp_, max=5.0), torch.sum, torch.Tensor.backward]
        reduce(lambda value, step: step(value), steps, x)
        GRADS = {"x": x.grad.log()}
    """, "pass `torch.clamp`, which", "", {"x": [1.0, 1.0]}, "unsafe"),
    Repair("a gradient that is kept", "GS302", """
        x = torch.ones(2, requires_grad=True)
        (x * 3).sum().backward()
        kept = x.grad
        x.grad.zero_()
        GRADS = {"kept": kept + 0}
    """, "`kept = x.grad.detach().clone()`", "x.grad.detach().clone()", {"kept": [3.0, 3.0]}),
    Repair("a tensor itself on the loss path", "GS201", """
        x = torch.ones(2, requires_grad=True)
        penalty = torch.tensor(x.pow(2).sum())
        loss = (x * 2).sum() + penalty
        loss.backward()
        GRADS = {"x": x.grad}
    """, "`penalty = x.pow(2).sum()`", "penalty = x.pow(2).sum()", {"x": [4.0, 4.0]}),
    Repair("stacked losses", "GS201", """
        x = torch.ones(2, requires_grad=True)
        losses = [(x * 2).sum(), (x * 3).sum()]
        total = torch.tensor(losses).sum()
        total.backward()
        GRADS = {"x": x.grad}
    """, "`total = torch.stack(losses).sum()`", "torch.stack(losses).sum()", {"x": [5.0, 5.0]}),
    Repair("a number on the loss path", "GS202", """
        x = torch.ones(2, requires_grad=True)
        loss = (x * 2).sum() + (x * x).sum().item()
        loss.backward()
        GRADS = {"x": x.grad}
    """, "`loss = (x * 2).sum() + (x * x).sum()`", "(x * x).sum()\n", {"x": [4.0, 4.0]}),
    Repair("a loss that is only logged", "GS404", """
        x = torch.ones(2, requires_grad=True)
        total = 0.0
        for _ in range(3):
            loss = (x * 2).sum()
            loss.backward()
            total += loss
        print(total)
        GRADS = {"x": x.grad}
    """, "`total += loss.detach()`", "loss.detach()", {"x": [6.0, 6.0]}),
    Repair("a manual update", "GS102", """
        w = torch.ones(2, requires_grad=True)
        (w * 2).sum().backward()
        w -= 0.5 * w.grad
        GRADS = {"w": w + 0}
    """, "under `torch.no_grad()`", "with torch.no_grad():\n    w -= 0.5 * w.grad", {"w": [0.0, 0.0]}),
    Repair("a moved zero_grad", "GS502", """
        w = nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([w], lr=0.5)
        for _ in range(2):
            loss = (w * 2).sum()
            loss.backward()
            optimizer.zero_grad()
            optimizer.step()
        GRADS = {"w": w.detach()}
    """, "move `optimizer.zero_grad()`", "optimizer.zero_grad()\n    loss = ", {"w": [-1.0, -1.0]}),
    Repair("a moved backward", "GS502", """
        w = nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([w], lr=0.5)
        for _ in range(2):
            optimizer.zero_grad()
            loss = (w * 2).sum()
            optimizer.step()
            loss.backward()  # late
        GRADS = {"w": w.detach()}
    """, "move `loss.backward()`", "    loss.backward()  # late\n    optimizer.step()", {"w": [-1.0, -1.0]}, "unsafe"),
    Repair("a moved backward, with the clearing last", "GS502", """
        w = nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([w], lr=0.5)
        for _ in range(2):
            loss = (w * 2).sum()
            optimizer.step()
            loss.backward()
            optimizer.zero_grad()
        GRADS = {"w": w.detach()}
    """, "move `loss.backward()`", "    loss.backward()\n    optimizer.step()\n    optimizer.zero_grad()", {"w": [-1.0, -1.0]}, "unsafe"),
    Repair("a moved step", "GS106", """
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        for p in net.parameters():
            nn.init.ones_(p)
        optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
        out = net(torch.ones(1, 2))
        first = out.sum()
        second = out.pow(2).sum()
        first.backward(retain_graph=True)
        optimizer.step()
        second.backward()
        GRADS = {"bias": net[1].bias.grad}
    """, "move `optimizer.step()`", "second.backward()\noptimizer.step()", {"bias": [15.0]}, "unsafe"),
    Repair("a missing backward", "GS503", """
        w = nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([w], lr=0.5)
        for _ in range(2):
            optimizer.zero_grad()
            loss = (w * 2).sum()
            optimizer.step()
        GRADS = {"w": w.detach()}
    """, "add `loss.backward()`", "loss.backward()\n    optimizer.step()", {"w": [-1.0, -1.0]}, "unsafe"),
    Repair("a missing zero_grad", "GS501", """
        w = nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([w], lr=0.5)
        for _ in range(2):
            loss = (w * 2).sum()
            loss.backward()
            optimizer.step()
        GRADS = {"w": w.detach()}
    """, "add `optimizer.zero_grad()`", "    optimizer.zero_grad()\n", {"w": [-1.0, -1.0]}),
    Repair("the sum of a vector", "GS401", """
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.backward()
        GRADS = {"x": x.grad}
    """, "`y.sum().backward()`", "y.sum().backward()", {"x": [2.0, 2.0]}, "unsafe"),
    Repair("the mean of a vector", "GS401", """
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.backward()
        GRADS = {"x": x.grad}
    """, "`y.mean().backward()`", "y.mean().backward()", {"x": [1.0, 1.0]}, "unsafe"),
    Repair("the gradient of a non-leaf", "GS301", """
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        (y * y).sum().backward()
        GRADS = {"y": y.grad}
    """, "retain_grad()", "y.retain_grad()", {"y": [4.0, 4.0]}),
    Repair("a hidden state that is carried over", "GS403", """
        w = torch.full((2,), 0.5, requires_grad=True)
        state = torch.ones(2)
        for _ in range(2):
            state = state * w
            loss = state.sum()
            loss.backward()
        GRADS = {"w": w.grad}
    """, "`state = state.detach()`", "state = state.detach()", {"w": [1.5, 1.5]}, "unsafe"),
    Repair("a penalty on a gradient", "GS405", """
        x = torch.ones(2, requires_grad=True)
        out = (x ** 3).sum()
        (grad,) = torch.autograd.grad(out, x)
        loss = (x * 0).sum() + grad.pow(2).sum()
        loss.backward()
        GRADS = {"x": x.grad}
    """, "create_graph=True", "torch.autograd.grad(out, x, create_graph=True)", {"x": [36.0, 36.0]}),
    Repair("layers in a list", "GS601", """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [nn.Linear(2, 2), nn.Linear(2, 1)]

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x

        net = Net()
        optimizer = torch.optim.SGD([*net.parameters(), torch.zeros(1, requires_grad=True)], lr=0.1)
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        GRADS = {"bias": dict(net.named_parameters())["layers.1.bias"].grad}
    """, "an `nn.ModuleList`", "nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 1)])", {"bias": [1.0]}),
    Repair("parameters in a list", "GS601", """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scales = [nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))]

            def forward(self, x):
                for scale in self.scales:
                    x = x * scale
                return x

        net = Net()
        net(torch.ones(1, 2)).sum().backward()
        GRADS = {"scale": dict(net.named_parameters())["scales.1"].grad}
    """, "an `nn.ParameterList`", "nn.ParameterList([", {"scale": [1.0, 1.0]}),
    Repair("a tensor that is to be a parameter", "GS601", """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.ones(2, requires_grad=True)

            def forward(self, x):
                return x * self.scale

        net = Net()
        net(torch.ones(1, 2)).sum().backward()
        GRADS = {"scale": dict(net.named_parameters())["scale"].grad}
    """, "nn.Parameter(", "self.scale = nn.Parameter(torch.ones(2))", {"scale": [1.0, 1.0]}),
    Repair("a tensor that is to be a buffer", "GS601", """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.ones(2, requires_grad=True)
                self.layer = nn.Linear(2, 1)

            def forward(self, x):
                return self.layer(x * self.scale)

        net = Net()
        net(torch.ones(1, 2)).sum().backward()
        GRADS = {"buffers": torch.stack([b for b in net.buffers()])[0], "bias": net.layer.bias.grad}
    """, "register_buffer(", 'self.register_buffer("scale", torch.ones(2))', {"buffers": [1.0, 1.0], "bias": [1.0]}, "unsafe"),
    Repair("a mistyped attribute", "GS602", """
        x = torch.ones(2)
        x.require_grad = True
        (x * 2).sum().backward()
        GRADS = {"x": x.grad}
    """, "`x.requires_grad = True`", "x.requires_grad = True", {"x": [2.0, 2.0]}),
    Repair("a mistyped attribute that no list knows", "GS602", """
        x = torch.ones(2)
        x.reqires_gard = True
        (x * 2).sum().backward()
        GRADS = {"x": x.grad}
    """, "`x.requires_grad = True`", "x.requires_grad = True", {"x": [2.0, 2.0]}),
    Repair("requires_grad before a conversion", "GS303", """
        weight = torch.ones(2, requires_grad=True).to(torch.float64)
        optimizer = torch.optim.SGD([weight], lr=0.5)
        (weight * 2).sum().backward()
        optimizer.step()
        GRADS = {"weight": weight.grad}
    """, "requires_grad_()", "torch.ones(2).to(torch.float64).requires_grad_()", {"weight": [2.0, 2.0]}),
]  # fmt: skip


@pytest.mark.parametrize("repair", REPAIRS, ids=lambda repair: repair.name)
def test_a_repair_makes_a_program_that_runs(repair: Repair) -> None:
    text = check(repair)
    found = grads_of(text, PATH)
    for name, wanted in repair.grads.items():
        value = found[name]
        shown = None if value is None else [round(one, 4) for one in value.flatten().tolist()]
        assert shown == wanted


def check(repair: Repair) -> str:
    """The text after the repair, which is offered under its title, is as safe as told, and writes what is told."""
    source = Source(PATH, HEAD + dedent(repair.text).lstrip("\n"))
    report = analyze(source)
    fixes = [
        fix
        for finding in report.findings
        if finding.code == repair.code
        for fix in fixes_for(source, finding, report=report)
    ]
    chosen = [fix for fix in fixes if repair.title in fix.title]
    assert chosen, [fix.title for fix in fixes] or [one.code for one in report.findings]
    text = apply_edits(source.text, chosen[0].edits)
    assert repair.written in text, text
    assert chosen[0].safety == repair.safety
    return text


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("torch.tensor(t)", "t.detach().clone()"),
        ("torch.tensor(t * 2)", "(t * 2).detach().clone()"),
        ("torch.tensor(t, dtype=torch.float64)", "t.detach().clone().to(torch.float64)"),
        ("torch.tensor(t, requires_grad=True)", "t.detach().clone().requires_grad_(True)"),
    ],
)
def test_a_copy_made_by_torch_tensor_is_written_as_torch_wants_it(call: str, after: str) -> None:
    head = "import torch\n\nt = torch.ones(2).exp()\n"
    ((text, safety),) = rewritten(f"{head}copy = {call}\n", 4)
    assert (text, safety) == (f"{head}copy = {after}\n", "safe")
    tail = "GRADS = {'v': copy.detach(), 'q': torch.tensor(float(copy.requires_grad)), 'd': copy.double()}\n"
    told, made = grads_of(f"{head}copy = {call}\n{tail}", PATH), grads_of(text + tail, PATH)
    for name, value in told.items():
        assert value.dtype == made[name].dtype
        assert value.tolist() == made[name].tolist()


@pytest.mark.parametrize("given", ["[1.0, 2.0]", "3.0", "values", "numbers", "t.tolist()", "t.item()"])
def test_what_is_not_plainly_a_tensor_is_left_to_torch_tensor(given: str) -> None:
    text = f"import torch\n\n\ndef f(values, t):\n    numbers = [1, 2]\n    return torch.tensor({given})\n"
    assert rewritten(text, 6) == []
