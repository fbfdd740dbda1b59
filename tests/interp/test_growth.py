"""What a program costs grows with its text: counted in executed syntax nodes, never in seconds."""

from __future__ import annotations

import ast
import cProfile
from collections.abc import Callable
from typing import Any

import pytest

from gradsight.analysis import analyze
from gradsight.interp import syntax_parts
from gradsight.interp.paths import entries
from gradsight.interp.paths.entries import Explorer
from gradsight.interp.tensors import backward
from gradsight.model.report import Report
from gradsight.model.source import Source

HEAD = "import torch\nfrom torch import nn\n"
LEAF = "w = torch.ones(3, requires_grad=True)\n"
HAZARD = "y = w.exp()\ny += 1\ny.sum().backward()\n"


def report_on(text: str) -> Report:
    return analyze(Source("/nowhere/growth.py", text))


def codes(text: str) -> set[str]:
    return {finding.code for finding in report_on(text).findings}


def steps_for(monkeypatch: pytest.MonkeyPatch, text: str) -> int:
    """How many syntax nodes all paths execute."""
    spent: list[int] = []
    explore = Explorer.explore

    def counted(self: Any, record: Any, *rest: Any) -> None:
        explore(self, record, *rest)
        spent.append(record.spent)

    with monkeypatch.context() as patched:
        patched.setattr(Explorer, "explore", counted)
        report_on(text)
    return sum(spent)


def nested(opener: str, depth: int, body: str) -> str:
    lines = [" " * level + opener.format(level=level) for level in range(depth)]
    return "\n".join([*lines, " " * depth + body]) + "\n"


def diamonds(count: int) -> str:
    lines = ["class A0(nn.Module): pass\n"]
    for number in range(1, count):
        lines += [f"class L{number}(A{number - 1}): pass\nclass R{number}(A{number - 1}): pass\n"]
        lines += [f"class A{number}(L{number}, R{number}): pass\n"]
    return "".join(lines) + f"A{count - 1}().missing\n"


NEVER_ENDED: dict[str, str] = {
    "brackets": "x = torch.tensor(" + "[" * 60 + "1." + "]" * 60 + ")\n",
    "diamonds": diamonds(60),
    "tuples": "t = (torch.ones(3),)\n"
    + "t = (t, t)\n" * 60
    + "for a in t:\n    for b in a:\n        print(b)\n",
    "lists": "l = [w.exp()]\n" + "l = l + l\n" * 60,
    "texts": "s = 'torch'\n" + "s = s + s\n" * 60,
    "texts that are filled in": "s = '%*d' % (10**13, 1)\n",
}


@pytest.mark.parametrize("name", NEVER_ENDED)
def test_what_doubles_does_not_hide_what_follows(name: str) -> None:
    assert "GS101" in codes(HEAD + LEAF + NEVER_ENDED[name] + HAZARD)


@pytest.mark.parametrize(
    "opener", ["for i{level} in range(10):", "for i{level} in things:", "while cond(w):"]
)
@pytest.mark.parametrize("depth", [6, 8, 12])
def test_what_follows_nested_loops_is_seen(opener: str, depth: int) -> None:
    text = HEAD + "from data import things, cond\n" + LEAF
    assert "GS101" in codes(text + nested(opener, depth, "z = (w * 2).sum()") + HAZARD)


def test_nested_loops_cost_in_proportion_to_their_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(depth: int) -> int:
        return steps_for(monkeypatch, HEAD + LEAF + nested("for i{level} in range(3):", depth, "z = w * 2"))

    assert cost(24) < 2.3 * cost(12)


def test_loops_in_more_loops_than_anybody_writes_do_not_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(depth: int) -> int:
        loops = nested("for i{level} in range(3):", depth, "w = w * 2; w.sum().backward()")
        return steps_for(monkeypatch, HEAD + LEAF + loops)

    assert cost(10) < 2.3 * cost(5)
    report = report_on(HEAD + LEAF + nested("for i{level} in range(3):", 10, "w = w * 2; w.sum().backward()"))
    assert "GS403" in {finding.code for finding in report.findings}


def test_loops_of_different_functions_all_get_their_rounds() -> None:
    """Epochs, batches, stages, blocks, heads, layers: what the last loop does is part of what is learned."""
    inner = "def f0(h):\n    for k in range(2):\n        h = h * 2\n    return h\n"
    for number in range(1, 6):
        inner += f"def f{number}(h):\n    for k in range(2):\n        h = f{number - 1}(h)\n    return h\n"
    train = "for step in range(3):\n    y = f5(w).exp()\n    if step == 2:\n        y += 1\n    y.sum().backward()\n"
    assert "GS101" in codes(HEAD + LEAF + inner + train)


def comprehensions(depth: int) -> str:
    return "x = " + "[" * depth + "w * 2" + " for a in range(2)]" * depth + "\n"


def test_comprehensions_in_comprehensions_do_not_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(depth: int) -> int:
        return steps_for(monkeypatch, HEAD + LEAF + comprehensions(depth))

    # In proportion to the clauses that stand in the fifth one: three, then eleven.
    assert cost(16) < 4 * cost(8)
    assert "GS101" in codes(HEAD + LEAF + comprehensions(20) + HAZARD)


def test_clauses_of_different_functions_are_all_run() -> None:
    """Blocks of stages of a model are made by comprehensions, each in a function of its own."""
    makers = "def f0(k):\n    return [w * k for _ in range(2)]\n" + "".join(
        f"def f{n}(k):\n    return [f{n - 1}(k) for _ in range(2)]\n" for n in range(1, 6)
    )
    last = "f5(2)" + "[1]" * 6
    assert "GS101" in codes(HEAD + LEAF + makers + f"y = ({last}).exp()\ny += 1\ny.sum().backward()\n")


def nodes_read(monkeypatch: pytest.MonkeyPatch, text: str) -> int:
    """How many syntax nodes are met when parts of the text are searched."""
    read: list[int] = []
    walked = syntax_parts._walked

    def counted(node: ast.AST) -> list[ast.AST]:
        found = walked(node)
        read.append(len(found))
        return found

    with monkeypatch.context() as patched:
        patched.setattr(syntax_parts, "_walked", counted)
        report_on(text)
    return sum(read)


def test_conditions_in_conditions_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(depth: int) -> int:
        ifs = "".join("    " * (n + 1) + f"if x.flag{n}:\n" for n in range(depth))
        body = "    " * (depth + 1) + "x = x.exp()\n"
        return nodes_read(monkeypatch, HEAD + "def loss(x):\n" + ifs + body + "    x *= 2\n    return x\n")

    assert cost(80) < 2.5 * cost(40)


def test_comprehensions_in_comprehensions_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(depth: int) -> int:
        return nodes_read(monkeypatch, HEAD + LEAF + comprehensions(depth))

    assert cost(48) < 2.7 * cost(24)


def test_loops_within_their_measure_are_executed_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(rounds: int) -> int:
        loops = nested(f"for i{{level}} in range({rounds}):", 2, "z = w * 2")
        return steps_for(monkeypatch, HEAD + LEAF + loops)

    assert cost(12) > 4 * cost(5)


GROWN: dict[str, Callable[[int], str]] = {
    "terms": lambda n: LEAF + "y = " + " + ".join(["w"] * n) + "\n",
    "elifs": lambda n: (
        LEAF
        + "from config import mode\nif mode == 0:\n    pass\n"
        + "".join(f"elif mode == 'm{k}':\n    y = w * {k}\n" for k in range(n))
    ),
    "flags": lambda n: (
        LEAF
        + "from config import args\ny = w.exp()\n"
        + "".join(f"if args.f{k}:\n    y.add_({k})\n" for k in range(n))
        + "y.sum().backward()\n"
    ),
    "inheritance": lambda n: (
        "class A0(nn.Module):\n    def forward(self, x):\n        return x\n"
        + "".join(
            f"class A{k}(A{k - 1}):\n    def forward(self, x):\n        return super().forward(x) + 1\n"
            for k in range(1, n)
        )
        + f"A{n - 1}()(torch.ones(3))\n"
    ),
}


@pytest.mark.parametrize("name", GROWN)
def test_twice_the_text_costs_about_twice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = (steps_for(monkeypatch, HEAD + GROWN[name](count)) for count in (60, 120))
    assert large <= 2.3 * small


@pytest.mark.parametrize(
    ("before", "term"),
    [
        ("y = ", "w"),
        ("y = ", "(w * 2).sum()"),
        ("y = torch.zeros(3)\ny[0] = ", "w[1] * 2"),
        ("y = torch.zeros(3)\ny[torch.tensor([0, 0])] = ", "w[1] * 2"),
    ],
)
def test_a_sum_of_many_terms_is_looked_at_to_its_end(before: str, term: str) -> None:
    report = report_on(HEAD + LEAF + before + " + ".join([term] * 1200) + "\ny.sum().backward()\n" + HAZARD)
    assert "GS101" in {finding.code for finding in report.findings}
    assert not [gap for gap in report.gaps if gap.kind in ("budget", "detector", "internal")]


def test_a_long_chain_of_conditions_is_gone_through() -> None:
    chain = "if w.a == 0:\n    pass\n" + "".join(f"elif w.a == {k}:\n    pass\n" for k in range(1200))
    report = report_on(HEAD + LEAF + chain + "else:\n    y = w.exp()\n    y += 1\n    y.sum().backward()\n")
    assert "GS101" in {finding.code for finding in report.findings}
    assert not [gap for gap in report.gaps if gap.kind in ("budget", "internal")]


def test_what_is_too_deep_costs_its_own_statement_and_is_said() -> None:
    report = report_on(HEAD + LEAF + "x = w" + ".exp()" * 1000 + "\n" + HAZARD)
    assert "GS101" in {finding.code for finding in report.findings}
    assert [gap.line for gap in report.gaps if "too deep" in gap.reason] == [4]
    assert not [gap for gap in report.gaps if gap.kind == "internal"]


def test_many_backwards_through_one_graph_cost_what_is_new_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def text(count: int) -> str:
        grown = "h = h * 2\nh.sum().backward(retain_graph=True)\n" * count
        return f"{HEAD}{LEAF}h = w.exp()\n{grown}{HAZARD}"

    met: list[int] = []
    monkeypatch.setattr(backward, "MOST_WALKED_AGAIN", 2_000)
    walk = backward.BackwardEngine.walk

    def counted(self: Any, *rest: Any) -> Any:
        before = self.walked
        run = walk(self, *rest)
        met[-1] += self.walked - before
        return run

    monkeypatch.setattr(backward.BackwardEngine, "walk", counted)
    for count in (100, 200, 400):
        met.append(0)
        report = report_on(text(count))
        assert {finding.code for finding in report.findings} == {"GS101"}
        assert any("many backwards" in gap.reason for gap in report.gaps)
    assert met[2] - met[1] <= 2.3 * (met[1] - met[0])


LONG_ROUNDS = (
    LEAF
    + "for a in range(100):\n    for b in range(100):\n"
    + "".join(f"        y{k} = w.exp()\n" for k in range(40))
)
OWN_MODEL = "class Net(nn.Module):\n    def forward(self, x):\n        return x * 2\n"


@pytest.mark.parametrize(
    ("text", "tries"), [(LONG_ROUNDS, 1), (f"{OWN_MODEL}Net()(torch.ones(3))\n{LONG_ROUNDS}", 2)]
)
def test_work_that_comes_to_no_end_is_tried_again_only_where_a_model_could_cost_less(
    text: str, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    machine = entries.Machine

    def counted(program: Any, module: Any, choices: Any, budget: int) -> Any:
        made.append(budget)
        return machine(program, module, choices, budget)

    monkeypatch.setattr(entries, "SCRIPT_BUDGET", 500)
    monkeypatch.setattr(entries, "PER_LINE", 0)
    monkeypatch.setattr(entries, "Machine", counted)
    assert any(gap.kind == "budget" for gap in report_on(HEAD + text).gaps)
    assert made.count(500) == tries


LOOKING = """
from files import scan

def look(place):
    found = {}
    for entry in scan(place):
        found[entry.name] = look(entry)
    return found

look(scan)
"""
ASKING = """
from settings import rules

class Settings:
    def __getattribute__(self, key):
        if key in rules and not super().__getattribute__("is_open"):
            raise AttributeError(key)
        if key in rules.more and not super().__getattribute__("is_open"):
            raise AttributeError(key)
        return super().__getattribute__(key)

    @property
    def is_open(self):
        return self.__dict__.get("is_open", False)

Settings().size
"""


def test_an_argument_does_not_cost_by_how_many_functions_a_file_has() -> None:
    """Its class is looked for among the classes of the file, and not among all of its names for every argument."""

    def calls(count: int) -> int:
        text = HEAD + "".join(
            f"def step_{n}(net, x):\n    net.inner.add_({n})\n    return x\n" for n in range(count)
        )
        profile = cProfile.Profile()
        profile.runcall(report_on, text)
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(800) < 2.3 * calls(400)


def test_recursion_in_a_loop_over_unknown_values_does_not_double(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six activations of two rounds each are 63 calls; a chain of them is followed in every round of the first alone."""
    plain = LOOKING.replace("look(entry)\n", "entry\n")
    assert steps_for(monkeypatch, HEAD + LOOKING) < 12 * steps_for(monkeypatch, HEAD + plain)


def called_twice(depth: int) -> str:
    functions = "def f0(x):\n    return x.exp()\n" + "".join(
        f"def f{n}(x):\n    return f{n - 1}(x) + f{n - 1}(x)\n" for n in range(1, depth)
    )
    return f"{HEAD}{functions}{LEAF}f{depth - 1}(w).sum().backward()\n"


def made_twice(depth: int) -> str:
    makers = "f = lambda x: x.exp()\n" + "f = (lambda g: lambda x: g(x) + g(x))(f)\n" * depth
    return f"{HEAD}{LEAF}{makers}f(w).sum().backward()\n"


@pytest.mark.parametrize("written", [called_twice, made_twice])
def test_the_same_calls_in_the_same_calls_do_not_double(
    written: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chain of ten functions, of which each calls the next one twice, is 1,023 calls; one of twenty a million."""
    cost = [steps_for(monkeypatch, written(depth)) for depth in (9, 18, 36)]
    assert cost[1] < 2.3 * cost[0]
    assert cost[2] < 2.3 * cost[1]
    assert "GS101" in codes(written(18) + HAZARD)


def test_what_is_called_twice_is_followed_twice() -> None:
    """The second pass through the same functions, and one in each epoch, are not the first one."""
    passes = """
def attend(x):
    return x.exp()

def block(x):
    return attend(x) + attend(x)

def model(x):
    return block(x) + block(x)

for epoch in range(4):
    first = model(w)
    second = model(w)
    third = attend(w)
    third += 1
    (first + second + third).sum().backward()
"""
    assert "GS101" in codes(HEAD + LEAF + passes)


def test_an_attribute_hook_that_asks_itself_is_followed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    once = ASKING.replace("self.__dict__.get", "{}.get")
    assert steps_for(monkeypatch, HEAD + ASKING) < 12 * steps_for(monkeypatch, HEAD + once)


def test_a_property_that_fills_itself_and_asks_again_is_followed() -> None:
    filled = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self._scale = None

    @property
    def scale(self):
        if self._scale is None:
            self._scale = nn.Parameter(torch.ones(3))
            return self.scale
        return self._scale

y = Net().scale.exp()
y += 1
y.sum().backward()
"""
    assert "GS101" in codes(HEAD + filled)


def test_recursion_over_known_modules_reaches_all_of_them() -> None:
    frozen = """
def freeze(module):
    for child in module.children():
        freeze(child)
    for parameter in module.parameters(recurse=False):
        parameter.requires_grad = False

deep = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))))
freeze(deep)
deep(torch.ones(2, 3)).sum().backward()
"""
    assert codes(HEAD + frozen) == {"GS205"}
