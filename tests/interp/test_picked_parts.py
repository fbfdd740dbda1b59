"""Models picked by name, heads that no optimizer holds, parameters sorted into groups, and gradients of what is not held."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interp.checking import check
from tests.interp.test_projects import twins

ARGS = """
import argparse
import torchvision.models as models
args = argparse.ArgumentParser().parse_args()
"""
LOOP = """
for batch in torch.ones(9, 8, 3, 8, 8):
    opt.zero_grad()
    net(batch).square().mean().backward()
    opt.step()
"""


@pytest.mark.parametrize("picked", ["models.__dict__[args.arch]()", "getattr(models, args.arch)()"])
def test_a_model_picked_by_name_is_one_of_those_that_can_be_meant(picked: str) -> None:
    check(f"{ARGS}net = {picked}\nopt = torch.optim.SGD(net.fc.parameters(), lr=0.1)  # GS512\n{LOOP}")
    check(f"{ARGS}net = {picked}\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n{LOOP}")


def test_an_optimizer_picked_by_name_holds_what_it_is_given() -> None:
    made = "net = models.resnet18()\nopt = getattr(torch.optim, args.optim)"
    check(f"{ARGS}{made}(net.fc.parameters(), lr=0.1)  # GS512\n{LOOP}")
    check(f"{ARGS}{made}(net.parameters(), lr=0.1)\n{LOOP}")


NETS = """
def narrow(a, b):
    return nn.Linear(a, b)

class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.body, self.head = narrow(4, width), nn.Linear(width, 2)
    def forward(self, x):
        return self.head(self.body(x))

def small(**options):
    return Net(4, **options)
"""
TRAIN = """
import sys
import nets
net = nets.__dict__[sys.argv[1]]()
opt = torch.optim.SGD(net.head.parameters(), lr=0.1)  # GS512
for batch in torch.ones(9, 8, 4):
    opt.zero_grad()
    net(batch).square().mean().backward()
    opt.step()
"""


def test_a_function_of_another_file_is_picked_that_needs_nothing(tmp_path: Path) -> None:
    twins(tmp_path, "net.head.parameters()", "net.parameters()", nets=NETS, train=TRAIN)


HEADS = """
class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        return self.fc(x).relu()
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
    def forward(self, x):
        return self.fc(x)
body, {head} = Body(), Head()
{more}
opt = torch.optim.SGD({held}, lr=0.1){said}
for x, y in zip(torch.ones(9, 8, 4), torch.zeros(9, 8).long()):
    opt.zero_grad()
    {clear}
    F.cross_entropy({head}(body(x)), y).backward()
    opt.step()
"""


def test_a_fresh_head_behind_what_is_trained_must_be_in_an_optimizer() -> None:
    check(HEADS.format(head="head", more="", held="body.parameters()", clear="", said="  # GS512"))


@pytest.mark.parametrize(
    ("head", "more", "held"),
    [
        ("head", "", "[*body.parameters(), *head.parameters()]"),
        ("head", "head.requires_grad_(False)", "body.parameters()"),
        ("head", "head.load_state_dict(torch.load('head.pt'))", "body.parameters()"),
        ("head", "head.eval()", "body.parameters()"),
        ("teacher", "", "body.parameters()"),
    ],
)
def test_a_head_that_is_meant_to_stay_is_left_alone(head: str, more: str, held: str) -> None:
    check(HEADS.format(head=head, more=more, held=held, clear="", said=""))


def test_a_head_that_is_cleared_by_itself_is_left_alone() -> None:
    check(HEADS.format(head="head", more="", held="body.parameters()", clear="head.zero_grad()", said=""))


SORTED = """
net = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)) for _ in range({count})])
decay, rest = {empty}, {empty}
for name, parameter in net.named_parameters():
    if name.endswith("bias"):
        rest.{add}(name)
    else:
        decay.{add}(name)
table = dict(net.named_parameters())
groups = [{{"params": [table[name] for name in sorted(decay)]}}, {{"params": [table[name] for name in sorted(rest)]}}]
opt = torch.optim.SGD(groups{part}, lr=0.1){said}
for batch in torch.ones(9, 8, 4):
    opt.zero_grad()
    net(batch).square().mean().backward()
    opt.step()
"""


@pytest.mark.parametrize(("empty", "add"), [("set()", "add"), ("[]", "append")])
@pytest.mark.parametrize("count", [2, 10, 60])
def test_parameters_that_a_loop_sorts_into_groups_are_all_held(empty: str, add: str, count: int) -> None:
    check(SORTED.format(empty=empty, add=add, count=count, part="", said=""))


def test_a_group_that_is_left_out_is_reported() -> None:
    check(SORTED.format(empty="[]", add="append", count=10, part="[:1]", said="  # GS512"))


GROUPS = """
from tools import groups_of
net = nn.Linear(4, 2)
opt = torch.optim.AdamW(groups_of(net, 0.05), lr=0.1)
for batch in torch.ones(9, 8, 4):
    {clear}
    net(batch).square().mean().backward(){said}
    opt.step()
"""


def test_groups_that_unknown_code_makes_of_a_model_hold_its_parameters() -> None:
    check(GROUPS.format(clear="pass", said="  # GS501"))
    check(GROUPS.format(clear="opt.zero_grad()", said=""))


MEASURED = """
def norm_of(parameters):
    return torch.stack([one.grad.norm() for one in parameters if one.grad is not None]).norm()
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
opt = torch.optim.SGD(net{part}.parameters(), lr=0.1){said}
for batch in torch.ones(9, 8, 4):
    opt.zero_grad()
    net(batch).square().mean().backward()
    print(norm_of(net.parameters()).item())
    opt.step()
"""


def test_a_norm_of_all_gradients_is_no_use_of_those_that_are_left_out() -> None:
    check(MEASURED.format(part="[1]", said="  # GS512"))
    check(MEASURED.format(part="", said=""))


def test_gradients_that_are_read_for_themselves_are_used() -> None:
    check(
        """
        shared, local = nn.Linear(4, 2), nn.Linear(4, 2)
        opt = torch.optim.SGD(shared.parameters(), lr=0.1)
        for batch in torch.ones(9, 8, 4):
            local.zero_grad()
            local(batch).square().mean().backward()
            for mine, theirs in zip(local.parameters(), shared.parameters()):
                theirs.grad = mine.grad
            opt.step()
        """
    )


RHYTHM = """
import argparse
args = argparse.ArgumentParser().parse_args()
class Fire:
    def __init__(self):
        self.scaler = torch.amp.GradScaler()
    def __call__(self, loss, optimizer, parameters, update=True):
        self.scaler.scale(loss).backward()
        if update:
            self.scaler.unscale_(optimizer)
            norm = torch.stack([one.grad.norm() for one in parameters]).norm()
            self.scaler.step(optimizer)
            self.scaler.update()
            return norm
fire = Fire()
net = nn.Linear(4, 2)
every = args.every
{made}
opt.zero_grad()
for step, batch in enumerate(torch.ones(99, 8, 4)):
    fire(net(batch).square().mean() / every, opt, net.parameters(), update=(step + 1) % every == 0)
    if (step + 1) % every == 0:
        opt.zero_grad()
"""


@pytest.mark.parametrize("source", ["net.parameters()", "args.make_groups(net)"])
def test_a_rhythm_that_is_asked_for_twice_is_one_and_unscaled_gradients_are_those_of_the_optimizer(
    source: str,
) -> None:
    check(RHYTHM.format(made=f"opt = torch.optim.AdamW({source}, lr=0.1)"))


MANY_BLOCKS = """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(width, width), nn.Linear(width, width), nn.LayerNorm(width)
    def forward(self, x):
        return x + self.second(self.first(self.norm(x)).relu())
net = nn.Sequential(*[Block(8) for _ in range(60)])
for parameter in {frozen}.parameters():
    parameter.requires_grad = False
print(net(torch.ones(2, 8)).numpy())
"""


def test_a_loop_that_freezes_a_large_model_freezes_all_of_it() -> None:
    check(MANY_BLOCKS.format(frozen="net"))
    check(MANY_BLOCKS.format(frozen="net[:30]").replace(".numpy())", ".numpy())  # GS202"))


LINEAR_PROBE = """
net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 2))
for name, parameter in net.named_parameters():
    {freezing}
opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
def train():
    net.eval(){said}
    for batch in torch.ones(9, 5, 3, 8, 8):
        opt.zero_grad()
        net(batch).square().mean().backward()
        opt.step()
for epoch in range(3):
    train()
"""


def test_a_head_may_be_trained_on_frozen_layers_that_stay_in_eval_mode() -> None:
    check(LINEAR_PROBE.format(freezing="parameter.requires_grad = name.startswith('3.')", said=""))
    check(LINEAR_PROBE.format(freezing="pass", said="  # GS505"))
