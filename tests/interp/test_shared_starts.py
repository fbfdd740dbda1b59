"""Paths of one entry whose object is made the same go on from the moment when it was there, and say what they say from the beginning."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gradsight.analysis import analyze
from gradsight.interp.path_state import Program
from gradsight.interp.paths import shared_starts
from gradsight.interp.paths.assembly import Machine
from gradsight.interp.paths.itinerary import PathPlan
from gradsight.interp.paths.path_snapshot import PathSnapshot, Unsavable
from gradsight.interp.paths.shared_starts import SharedStart
from gradsight.model import Source
from gradsight.model.report import Report
from gradsight.model.source import Span
from gradsight.model.values import ClassValue, Instance, PythonModule, Seq, Stream, Unknown
from gradsight.ops.table import table_of
from tests.interp.checking import PREAMBLE

FLAGS = """
class Net(nn.Module):
    def __init__(self, width, deep, wide):
        super().__init__()
        self.first = nn.Linear(width, width)
        if deep:
            self.second = nn.Linear(width, width)
        self.kept = []
        self.total = None
        self.seen = 0

    def forward(self, x, mask=None, clip=False, square=False):
        h = self.first(x)
        if mask is not None:
            h = h * mask
        if clip:
            y = h.exp()
            h += 1
            h = h * y
        if square:
            y = h.sigmoid()
            y.mul_(2)
            h = h + y
        return h
"""
STATE = """
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.register_buffer("mean", torch.zeros(3))
        self.parts = [torch.ones(3)]
        self.table = {"scale": torch.ones(3)}

    def forward(self, x, first=False, second=False):
        if first:
            self.mean.mul_(0.9)
            self.parts.append(x)
            self.table["scale"] = x.detach()
            self.parts[0].requires_grad_()
        h = self.layer(x) * self.mean * self.table["scale"]
        if second:
            self.parts[0].add_(1)
            h = h.exp()
            h.add_(self.parts[-1])
        return h
"""
NESTED = """
class Inner(nn.Module):
    def __init__(self, width, odd):
        super().__init__()
        self.up = nn.Linear(width, 4 * width) if odd else nn.Linear(width, 2 * width)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x, keep=None):
        h = self.up(x)
        a = h.sigmoid()
        self.act(a)
        if keep is not None:
            keep.append(a)
        return a * h

class Outer(nn.Module):
    def __init__(self, width, odd):
        super().__init__()
        self.parts = nn.ModuleList([Inner(width, odd) for _ in range(3)])
        self.rows = iter(self.parts) if odd else None

    def forward(self, x, mask=None, skip=False):
        for part in self.parts:
            if skip:
                with torch.no_grad():
                    x = part(x)
            else:
                x = part(x)
        return x if mask is None else x.masked_fill_(mask, 0)
"""
TOLD = """
class Agent:
    def __init__(self, width):
        self.critic = nn.Linear(width, 1)
        self.target = self.critic
        self.optimizer = torch.optim.Adam(self.critic.parameters())
        self.scale = torch.tensor(nn.Parameter(torch.ones(3)))

    def learn(self, states, rewards, clip=False, decay=False):
        loss = F.mse_loss(self.critic(states), rewards + self.target(states).detach())
        if clip:
            loss = loss.clamp(max=1)
        if decay:
            loss = loss + self.critic.weight.square().sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""
PROGRAMS = {"flags": FLAGS, "state": STATE, "nested": NESTED, "told": TOLD}


@contextmanager
def worth_keeping(nodes: float) -> Iterator[list[bool]]:
    """Objects that cost so many nodes are made once; tells of each path whether it went on from one."""
    served: list[bool] = []
    begin = SharedStart.begin

    def noted(start: SharedStart, plan: PathPlan, budget: int, making: int) -> Machine | None:
        machine = begin(start, plan, budget, making)
        served.append(machine is not None)
        return machine

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADSIGHT_STRICT", "1")
        patch.setattr(shared_starts, "WORTH_KEEPING", nodes)
        patch.setattr(SharedStart, "begin", noted)
        yield served


def report_on(program: str) -> Report:
    return analyze(Source("program.py", PREAMBLE + program))


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_paths_that_share_their_beginning_say_the_same(program: str) -> None:
    with worth_keeping(float("inf")) as served:
        alone = report_on(program)
    assert not any(served)
    with worth_keeping(0) as served:
        together = report_on(program)
    assert any(served)
    assert alone.findings
    assert together == alone


def test_a_state_that_is_put_back_is_the_same_objects_with_what_they_held() -> None:
    machine = Machine(Program(table_of("")), PythonModule("__main__", "program.py"), [], 100)
    value, items = Unknown("argument x"), Seq("list", [1])
    instance = Instance(ClassValue("Net", [], {}, "plain"), None)
    instance.attributes = {"x": value, "items": items}
    machine.kept_alive.append(instance)
    machine.decided[id(value)] = True
    snapshot = PathSnapshot(machine, [])
    items.items.append(2)
    items.exact = False
    instance.attributes["y"] = value.derived("z", "what came later")
    machine.decided.clear()
    machine.budget = 3
    snapshot.restore()
    assert machine.kept_alive == [instance]
    assert instance.attributes == {"x": value, "items": items}
    assert (items.items, items.exact) == ([1], True)
    assert value.answers is None
    assert machine.decided == {id(value): True}
    assert machine.budget == 100


def test_what_never_changes_is_not_written_when_a_state_is_put_back() -> None:
    machine = Machine(Program(table_of("")), PythonModule("__main__", "program.py"), [], 100)
    span, counts = Span(1, 0, 1, 1), {"writes": 1}
    machine.kept_alive += [span, counts]
    snapshot = PathSnapshot(machine, [])
    counts["writes"] = 2
    snapshot.restore()
    assert machine.kept_alive == [span, counts]
    assert counts == {"writes": 1}


def test_what_is_shared_is_left_as_it_is() -> None:
    machine = Machine(Program(table_of("")), PythonModule("__main__", "program.py"), [], 100)
    names: dict[str, object] = {"a": 1}
    machine.kept_alive.append(names)
    snapshot = PathSnapshot(machine, [names])
    names["b"] = 2
    snapshot.restore()
    assert names == {"a": 1, "b": 2}


def test_an_iterator_cannot_be_put_back() -> None:
    machine = Machine(Program(table_of("")), PythonModule("__main__", "program.py"), [], 100)
    machine.kept_alive.append(Stream(iter([1])))
    with pytest.raises(Unsavable):
        PathSnapshot(machine, [])
