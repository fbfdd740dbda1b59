"""Training that a process is started for, settings that bring no graph, and optimizers that hold what others hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradsight.analysis import analyze
from gradsight.model.source import Source
from gradsight.session.reading import reader
from gradsight.session.workspace import WorkspaceFinder
from tests.interp.checking import check

WORKER = """
import argparse
import multiprocessing
import torch.multiprocessing as mp

def work(rank, net, optimizer, settings):
    for epoch in range(settings.epochs):
        for x in settings.data:
            {clear}
            loss = net(torch.randn(4, 3)).pow(2).mean()
            loss.backward(){claim}
            optimizer.step()

def main():
    settings = argparse.ArgumentParser().parse_args()
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    {start}

main()
"""
STARTS = [
    "mp.spawn(work, nprocs=2, args=(net, optimizer, settings))",
    "mp.spawn(fn=work, args=(net, optimizer, settings))",
    "mp.Process(target=work, args=(0, net, optimizer, settings)).start()",
    "multiprocessing.Process(target=work, args=(0, net), kwargs=dict(optimizer=optimizer, settings=settings)).start()",
]


@pytest.mark.parametrize("start", STARTS)
def test_the_function_of_a_process_is_executed_with_what_it_is_given(start: str) -> None:
    report = check(WORKER.format(start=start, clear="pass", claim="  # GS501"))
    assert [one.assumption for one in report.findings] == [""]
    check(WORKER.format(start=start, clear="optimizer.zero_grad()", claim=""))


def test_each_process_has_gradients_of_its_own() -> None:
    check("""
    import torch.multiprocessing as mp
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def once():
        net(torch.randn(4, 3)).mean().backward()
        optimizer.step()

    for rank in range(4):
        worker = mp.Process(target=once)
        worker.start()
    """)


SETTINGS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--eps", type=float, default=0.2)
given = parser.parse_args()
net = nn.Linear(3, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def update(eps, weight):
    ratio = net(torch.randn(2, 3)){cut}
    loss = torch.clamp(ratio, 1.0 - eps, 1.0 + eps).mean() * (weight / 2) - weight ** 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

for step in range(10):
    update(given.eps, -given.weight)
"""


def test_arithmetic_on_the_command_line_brings_no_graph() -> None:
    check(SETTINGS.format(cut=".detach()  # GS203"))
    check(SETTINGS.format(cut=""))


def test_what_is_read_from_settings_may_still_be_learned() -> None:
    check("""
    import argparse
    given = argparse.ArgumentParser().parse_args()
    scale = nn.Parameter(torch.ones(3) * given.scale)
    optimizer = torch.optim.SGD([scale], lr=0.1)
    for step in range(10):
        optimizer.zero_grad()
        (scale * (1.0 - given.eps)).sum().backward()
        optimizer.step()
    """)


AGENT = """
class Agent:
    def __init__(self, make):
        self.actor = Actor(make)
        self.first, self.second = nn.Linear(3, 1), nn.Linear(3, 1)
        self.actor_optimizer = torch.optim.Adam({actor}){claim}
        self.first_optimizer = torch.optim.Adam(self.first.parameters())
        self.second_optimizer = torch.optim.Adam(self.second.parameters())

    def learn(self, states):
        for net, optimizer in ((self.first, self.first_optimizer), (self.second, self.second_optimizer)):
            optimizer.zero_grad()
            net(states).pow(2).mean().backward()
            optimizer.step()
        self.actor_optimizer.zero_grad()
        actions = self.actor(states)
        (-self.first(actions) - self.second(actions)).mean().backward()
        self.actor_optimizer.step()

class Actor(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.body = {body}

    def forward(self, x):
        return torch.tanh(self.body(x))

import elsewhere
agent = Agent(elsewhere.make)
for step in range(10):
    agent.learn(torch.randn(4, 3))
"""
BOTH = "[*self.first.parameters(), *self.second.parameters()]"


@pytest.mark.parametrize("body", ["nn.Linear(3, 3)", "make(3, 3)"])
def test_an_optimizer_that_holds_what_others_hold_leaves_its_own_network_out(body: str) -> None:
    check(AGENT.format(actor=BOTH, claim="  # GS512", body=body))
    check(AGENT.format(actor="self.actor.parameters()", claim="", body=body))


CLIPPED = """
policy, value = nn.Linear(3, 1), nn.Linear(3, 1)
of_policy, of_value = torch.optim.Adam(policy.parameters()), torch.optim.Adam(value.parameters())

def update(x):
    of_value.zero_grad()
    value(x).pow(2).mean().backward()
    of_value.step()
    {before}
    of_policy.zero_grad()
    policy(x).pow(2).mean().backward()
    {between}
    of_policy.step()
    {after}

for step in range(10):
    update(torch.randn(4, 3))
"""
CLIP = "nn.utils.clip_grad_norm_(policy.parameters(), 1.0)"


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_clip_outside_of_its_own_backward_and_step_changes_nothing(where: str) -> None:
    places = {"before": "pass", "between": "pass", "after": "pass"}
    check(CLIPPED.format(**{**places, where: f"{CLIP}  # GS513"}))
    check(CLIPPED.format(**{**places, "between": CLIP}))


def test_a_package_of_comments_alone_parses(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "net").mkdir()
    (tmp_path / "net/__init__.py").write_text("# All rights reserved.\n")
    (tmp_path / "net/body.py").write_text("from torch import nn\nBody = nn.Linear\n")
    (tmp_path / "broken.py").write_text("def (:\n")
    text = "import net.body\nimport broken\nbody = net.body.Body(3, 1)\nbroken.run()\n"
    (tmp_path / "train.py").write_text(text)
    finder = WorkspaceFinder(str(tmp_path), reader())
    report = analyze(Source(str(tmp_path / "train.py"), text), None, finder)
    assert [gap.reason for gap in report.gaps if "does not parse" in gap.reason] == ["broken does not parse"]
