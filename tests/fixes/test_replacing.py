"""Writes past the graph, written out of place: on torch the tensor stays what it was, with the same values."""

from __future__ import annotations

import pytest

from gradsight_dev.verify_fixtures import agree
from tests.fixes.checking import rewritten
from tests.fixes.torch_running import grads_of

PROGRAM = """import torch
from torch import nn

net = nn.Linear(2, 1)
w = torch.tensor([1.0, -2.0], requires_grad=True)
optimizer = torch.optim.SGD([w, *net.parameters()], lr=0.1, momentum=0.9)
for _ in range(3):
    optimizer.zero_grad()
    loss = net(w * w).sum() + (w * 3).sum()
    loss.backward()
    optimizer.step()
HERE
optimizer.zero_grad()
(net(w * w).sum()).backward()
GRADS = {
    "w": w.detach(), "grad": w.grad, "weight": net.weight.detach(), "bias": net.bias.detach(), "leaf": torch.tensor(w.is_leaf),
    "parameters": torch.tensor(len(list(net.parameters()))),
}
"""


def rewritten_program(statement: str) -> list[str]:
    """The program after each rewrite of the line that says `# here`."""
    text = PROGRAM.replace("HERE", statement)
    line = next(number for number, line in enumerate(text.split("\n"), 1) if "# here" in line)
    return [result for result, _ in rewritten(text, line)]


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("w.data.mul_(0.5)  # here", "w.data = w.data * 0.5"),
        ("w.data[0] = 4.0  # here", "w.data = w.data.clone()"),
        ("w.detach().clamp_(-1, 1)  # here", "w.data = w.data.clone()"),
        ("w.detach()[0].mul_(3)  # here", "w.data = w.data.clone()"),
        ("net.weight.data.normal_(0, 0.1)  # here", "net.weight.data = net.weight.data.clone().normal_(0, 0.1)"),
        ("nn.init.xavier_uniform_(net.weight, gain=2.0)  # here", "nn.init.xavier_uniform_(net.weight.detach().clone(), gain=2.0)"),
        ("for p in net.parameters():\n    p.data.mul_(0.9)  # here", "    p.data = p.data * 0.9"),
        ("for p in net.parameters():\n    nn.init.zeros_(p)  # here", "    p.data = nn.init.zeros_(p.detach().clone())"),
        ("for p in net.parameters():\n    p.grad.clamp_(-1, 1)  # here", "    p.grad = p.grad.clamp(-1, 1)"),
        ("with torch.no_grad():\n    w -= 0.1 * w.grad  # here", "    w.data = w - 0.1 * w.grad"),
        ("with torch.no_grad():\n    w.sub_(w.grad, alpha=0.1)  # here", "    w.data = w.sub(w.grad, alpha=0.1)"),
        ("with torch.no_grad():\n    w[1] = 0.0  # here", "    w.data = w.data.clone()\n    w[1] = 0.0"),
        ("with torch.no_grad():\n    w = w.clamp_(0, 1)  # here", "    w.data = w.clamp(0, 1)"),
        ("with torch.no_grad():\n    print(w.clamp_(0, 1))  # here", "    w.data = w.clamp(0, 1)\n    print(w)"),
        ("with torch.no_grad():\n    for p in net.parameters():\n        p.copy_(p * 2)  # here", "p.data = p.clone().copy_(p * 2)"),
        ("with torch.no_grad():\n    net.weight.fill_(1.0)  # here", "    net.weight.data = net.weight.clone().fill_(1.0)"),
        ("@torch.no_grad()\ndef scale(p):\n    p.mul_(2)  # here\nscale(w)", "    p.data = p * 2"),
        ("def scale():\n    w.data.mul_(2)  # here\nscale()", "    w.data = w.data * 2"),
        ("h = net(w)\nwith torch.no_grad():\n    h *= 2  # here\nh.sum().backward(retain_graph=True)", "    h.data = h * 2"),
        ("with torch.no_grad():\n    net.weight += 1  # here", "    net.weight.data = net.weight + 1"),
        ("ws = [w, net.weight]\nws[0].data.mul_(2)  # here", "ws[0].data = ws[0].data * 2"),
        ("with torch.set_grad_enabled(False):\n    w.mul_(2)  # here", "    w.data = w * 2"),
    ],
)  # fmt: skip
def test_a_parameter_stays_a_parameter_with_the_same_values(statement: str, after: str) -> None:
    (text,) = rewritten_program(statement)
    assert after in text, text
    assert agree(grads_of(text, "program.py"), grads_of(PROGRAM.replace("HERE", statement), "program.py"))


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("with torch.no_grad():\n    out = net(w)\n    out.mul_(2)  # here", "    out = out * 2"),
        ("total = torch.zeros(1)\nwith torch.no_grad():\n    total += net(w)  # here", "    total = total + net(w)"),
        ("with torch.no_grad():\n    with torch.enable_grad():\n        y = w * 2\n        y.mul_(2)  # here", "        y = y * 2"),
    ],
)  # fmt: skip
def test_what_needs_no_gradient_gets_a_new_tensor(statement: str, after: str) -> None:
    (text,) = rewritten_program(
        statement + "\nprint(out if 'out' in dir() else total if 'total' in dir() else y)"
    )
    assert after in text, text
    assert agree(grads_of(text, "program.py"), grads_of(PROGRAM.replace("HERE", statement), "program.py"))


@pytest.mark.parametrize(
    "statement",
    [
        # What inference mode makes cannot stand in for a tensor from outside: torch refuses to record with it.
        "with torch.inference_mode():\n    w.mul_(2)  # here",
        # A list of tensors and a tensor look the same from here.
        "def scale(many):\n    many[0].data.mul_(2)  # here\nscale([w])",
        # Nothing can be assigned inside a comprehension.
        "[p.data.mul_(2) for p in net.parameters()]  # here",
    ],
)
def test_nothing_is_offered_that_could_lose_the_write(statement: str) -> None:
    assert rewritten_program(statement) == []


def test_a_number_under_no_grad_stays_a_number() -> None:
    (text,) = rewritten_program(
        "class Meter: count = 0\nmeter = Meter()\nwith torch.no_grad():\n    meter.count += 1  # here"
    )
    assert "    meter.count = meter.count + 1  # here" in text
