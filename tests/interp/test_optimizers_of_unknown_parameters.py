"""Optimizers made of parameters that nobody knows: the one beside a loss is for what that loss trains."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

LOOP = """
from settings import groups_for

net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
optimizer = torch.optim.AdamW({made_of}, lr=1e-3)
for step in range(10):
    {first}
    loss = net(torch.randn(8, 4)).mean()
    loss.backward(){told}
    optimizer.step()
"""
SUMMED = "  # GS501"


@pytest.mark.parametrize(
    "made_of",
    ["groups_for('net')", "[groups_for('net')]", "[{'params': groups_for('net')}]", "groups_for(net)"],
)
@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("print(step)", SUMMED),
        ("optimizer.zero_grad()", ""),
        ("net.zero_grad()", ""),
        ("for p in net.parameters(): p.grad = None", ""),
    ],
)
def test_what_the_loss_trains_is_what_the_optimizer_holds(made_of: str, first: str, told: str) -> None:
    check(LOOP.format(made_of=made_of, first=first, told=told))


NEVER = """
from settings import groups_for

net = nn.Linear(4, 1)
optimizer = torch.optim.AdamW(groups_for('net'), lr=1e-3)
for step in range(10):
    optimizer.zero_grad()
    loss = net(torch.randn(8, 4)).mean()
    loss.backward(){}
    {}
"""


@pytest.mark.parametrize(
    ("told", "then"),
    [
        ("  # GS512", "print(step)"),
        ("", "optimizer.step()"),
    ],
)
def test_an_optimizer_of_unknown_parameters_that_never_steps(told: str, then: str) -> None:
    check(NEVER.format(told, then))


def test_two_such_optimizers_are_not_told_apart() -> None:
    check("""
from settings import groups_for

net, critic = nn.Linear(4, 1), nn.Linear(4, 1)
optimizer = torch.optim.AdamW(groups_for('net'), lr=1e-3)
critic_optimizer = torch.optim.AdamW(groups_for('critic'), lr=1e-3)
for step in range(10):
    net(torch.randn(8, 4)).mean().backward()
    optimizer.step()
    critic(torch.randn(8, 4)).mean().backward()
    critic_optimizer.step()
""")


def test_a_part_that_is_trained_at_first_may_be_in_no_optimizer() -> None:
    check("""
from settings import groups_for

encoder, head = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.AdamW(groups_for('head'), lr=1e-3)
for step in range(10):
    optimizer.zero_grad()
    code = encoder(torch.randn(8, 4))
    head(code if step < 5 else code.detach()).mean().backward()
    optimizer.step()
""")


def test_the_backward_of_a_helper_is_for_something_else() -> None:
    check("""
from settings import groups_for

net = nn.Linear(4, 1)
optimizer = torch.optim.AdamW(groups_for('alpha'), lr=1e-3)

def sensitivity():
    net(torch.randn(8, 4)).mean().backward()
    found = net.weight.grad.clone()
    net.zero_grad()
    return found

scale = sensitivity()
for step in range(10):
    optimizer.step()
""")
