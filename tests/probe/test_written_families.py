"""What runs see of the families that the random tester writes: the line of the hazard, and nothing beside the right program."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradsight.probe.standby import Standby
from tests.probe.test_traps import codes, run

TRAINED = """\
import torch
from torch import nn

{before}
for _ in range(3):
    x, y = torch.randn(6, 4), torch.randn(6, 3)
{inside}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
NET = "net = nn.Linear(4, 3)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
PERTURB = "def perturb(z, noise):\n    {}\n    return z\n"
BOTH = "    loss = (z - y).pow(2).mean() + kept{}.pow(2).mean()"


def fitted(before: str, *inside: str) -> str:
    return TRAINED.format(before=before, inside="\n".join(f"    {line}" for line in inside))


def held(kept: str, read: str, change: str) -> str:
    inside = (f"kept = {kept}", f"z = kept{read}", f"z = {change}", BOTH.format(read).strip())
    return fitted(NET + PERTURB.format("z += noise"), *inside)


CHANGED = "perturb(z, torch.randn(6, 3))"
CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "entry": (held('{"mu": net(x)}', '["mu"]', CHANGED), ("GS107", "z += noise")),
    "name": (held("net(x)", "", CHANGED), ("GS107", "z += noise")),
    "copy": (held("net(x)", ".clone()", CHANGED), ()),
    "pure": (held('{"mu": net(x)}', '["mu"]', "z + torch.randn(6, 3)"), ()),
    "state": (
        fitted(NET, "kept = [net(x)]", "z = kept[0]", "z += 1", "loss = (kept[0] - y).pow(2).mean()"),
        (),
    ),
    "zero term": (
        fitted(NET, "out = net(x)", "loss = (out - y).pow(2).mean() + 0.5 * out.round().mean()"),
        ("GS208", "out.round()"),
    ),
    "straight through": (
        fitted(
            NET,
            "out = net(x)",
            "code = out + (out.round() - out).detach()",
            "loss = (code - y).pow(2).mean()",
        ),
        (),
    ),
    "sign as a factor": (
        fitted(NET, "out = net(x)", "loss = (out - y).pow(2).mean() + (out * out.sign()).mean()"),
        (),
    ),
    "head left out": (
        fitted(
            "net, head = nn.Linear(4, 5), nn.Linear(5, 3)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n",
            "loss = (head(net(x).tanh()) - y).pow(2).mean()",
        ),
        ("GS512", "opt = "),
    ),
    "only frozen": (
        fitted(
            "net, head = nn.Linear(4, 5), nn.Linear(5, 3)\nnet.requires_grad_(False)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n",
            "loss = (head(net(x).tanh()) - y).pow(2).mean()",
        ),
        ("GS512", "opt = "),
    ),
    "loaded head": (
        fitted(
            "net, head = nn.Linear(4, 5), nn.Linear(5, 3)\nhead.load_state_dict({'weight': torch.ones(3, 5), 'bias': torch.ones(3)})\n"
            "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n",
            "loss = (head(net(x).tanh()) - y).pow(2).mean()",
        ),
        (),
    ),
    "judged by a critic in eval mode": (
        fitted(
            "net, head = nn.Linear(4, 5), nn.Linear(5, 3).eval()\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n",
            "loss = (head(net(x).tanh()) - y).pow(2).mean()",
        ),
        (),
    ),
    "prompt": (
        fitted(
            "head = nn.Linear(4, 3)\nprompt = nn.Parameter(torch.zeros(4))\nopt = torch.optim.SGD([prompt], lr=0.1)\n",
            "loss = (head(x + prompt) - y).pow(2).mean()",
        ),
        (),
    ),
}
NOTHING_GIVEN = """\
import torch
from torch import nn

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, given, weight):
        ctx.save_for_backward(weight)
        return given * weight

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0], None

net, scale = nn.Linear(4, 3), nn.Parameter(torch.ones(3))
opt = torch.optim.SGD([*net.parameters(), scale], lr=0.1)
for _ in range(3):
    opt.zero_grad()
    Scale.apply(net(torch.randn(6, 4)), scale).pow(2).mean().backward()
    opt.step()
"""
CASES["function that gives no gradient"] = (NOTHING_GIVEN, ())
BLOCK = """\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential({head}nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4))

    def forward(self, x):
        return x + self.body(x)

net = nn.Sequential(nn.Linear(4, 4), Block(), nn.Linear(4, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
for _name, _head, _codes in (
    ("skip", "nn.ReLU(inplace=True), ", ("GS107", "self.body(x)")),
    ("own skip", "nn.ReLU(), ", ()),
):
    CASES[_name] = (fitted(BLOCK.format(head=_head), "loss = (net(x) - y).pow(2).mean()"), _codes)


@pytest.mark.parametrize("name", CASES)
def test_a_run_tells_the_hazard_and_nothing_else(name: str, tmp_path: Path, standby: Standby) -> None:
    text, (code, line) = CASES[name][0], CASES[name][1] or ("", "")
    rows = [number for number, each in enumerate(text.split("\n"), 1) if line and line in each]
    assert codes(run(standby, text, tmp_path)) == [(code, row) for row in rows[-1:]]
