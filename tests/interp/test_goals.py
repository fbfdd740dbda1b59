"""Paths are made for what can go wrong: arms behind many flags are seen, at a cost in proportion, and what is not is said."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from gradsight.analysis import analyze
from gradsight.interp.paths.entries import Explorer
from gradsight.model.report import Report
from gradsight.model.source import Source

HEAD = "import torch\nfrom torch import nn\nfrom config import args\nimport torch.nn.functional as F\n"


def report_on(text: str) -> Report:
    return analyze(Source("/nowhere/goals.py", text))


def codes(text: str) -> set[str]:
    return {finding.code for finding in report_on(text).findings if finding.severity in ("error", "warning")}


def shaped(body: str, shape: str) -> str:
    """A body at top level, or in a function that nobody calls."""
    return HEAD + body if shape == "script" else HEAD + "def train(args):\n" + textwrap.indent(body, "    ")


def training(flags: int, planted: int, arm: str) -> str:
    """One of many flags writes to what sigmoid saved, in one of its arms."""
    lines = [
        "net = nn.Linear(8, 8)",
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)",
        "from data import loader",
    ]
    lines += ["for x, y in loader:", "    opt.zero_grad()", "    act = torch.sigmoid(net(x))"]
    for flag in range(flags):
        written = "act += 1" if flag == planted else f"print({flag})"
        ways = (written, "print(0)") if arm == "if" else ("print(0)", written)
        lines += [f"    if args.f{flag}:", f"        {ways[0]}", "    else:", f"        {ways[1]}"]
    lines += ["    F.mse_loss(act, y).backward()", "    opt.step()"]
    return "\n".join(lines) + "\n"


def paths_of(monkeypatch: pytest.MonkeyPatch, text: str) -> int:
    executed: list[Any] = []
    monkeypatch.setattr(Explorer, "path_ended", lambda self, machine: executed.append(machine))
    report_on(text)
    return len(executed)


@pytest.mark.parametrize("shape", ["script", "function"])
@pytest.mark.parametrize("arm", ["if", "else"])
@pytest.mark.parametrize("planted", [0, 11, 24])
def test_every_arm_of_many_flags_is_seen(shape: str, arm: str, planted: int) -> None:
    assert "GS101" in codes(shaped(training(25, planted, arm), shape))


def test_the_number_of_paths_does_not_grow_with_independent_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (paths_of(monkeypatch, shaped(training(flags, 2, "else"), "function")) for flags in (4, 40))
    assert many <= few <= 6


@pytest.mark.parametrize("shape", ["script", "function"])
@pytest.mark.parametrize("planted", [1, 12, 24])
def test_the_arms_of_a_long_chain_are_seen(shape: str, planted: int) -> None:
    lines = ["w = torch.ones(3, requires_grad=True)", "y = w.exp()"]
    for arm in range(25):
        lines += [f"{'elif' if arm else 'if'} args.mode == 'm{arm}':"]
        lines += ["    y.add_(1)" if arm == planted else f"    print({arm})"]
    lines += ["y.sum().backward()"]
    assert "GS101" in codes(shaped("\n".join(lines) + "\n", shape))


def test_a_chain_that_ends_by_raising_is_gone_through() -> None:
    lines = ["w = torch.ones(3, requires_grad=True)", "y = w.exp()"]
    for arm in range(6):
        lines += [f"{'elif' if arm else 'if'} args.mode == 'm{arm}':"]
        lines += ["    y.add_(1)" if arm == 5 else f"    print({arm})"]
    lines += ["else:", "    raise ValueError(args.mode)", "y.sum().backward()"]
    assert "GS101" in codes(shaped("\n".join(lines) + "\n", "script"))


@pytest.mark.parametrize("flags", [1, 2, 12])
def test_a_write_that_needs_every_flag_off_is_seen(flags: int) -> None:
    lines = ["w = torch.ones(3, requires_grad=True)", "y = w.exp()"]
    for flag in range(flags):
        lines += [f"if args.f{flag}:", "    y = y + 1"]
    lines += ["y += 1", "y.sum().backward()"]
    assert "GS101" in codes(shaped("\n".join(lines) + "\n", "script"))


@pytest.mark.parametrize("is_called", [True, False])
@pytest.mark.parametrize("planted", [0, 5, 11])
def test_a_write_in_one_arm_is_seen_without_the_arms_that_bind_the_name_anew(
    planted: int, is_called: bool
) -> None:
    lines = ["class Net(nn.Module):", "    def __init__(self, cfg):", "        super().__init__()"]
    lines += ["        self.l = nn.Linear(8, 8)"] + [f"        self.use{k} = cfg.use{k}" for k in range(12)]
    lines += ["    def forward(self, x):", "        h = torch.sigmoid(self.l(x))"]
    for flag in range(12):
        lines += [f"        if self.use{flag}:"]
        lines += ["            h += 1" if flag == planted else f"            h = h * {flag + 1}"]
    lines += ["        return h"]
    if is_called:
        lines += ["net = Net(args)", "net(torch.randn(4, 8)).sum().backward()"]
    assert "GS101" in codes(HEAD + "\n".join(lines) + "\n")


def test_an_else_that_writes_meets_an_arm_that_saves() -> None:
    body = """
w = torch.ones(3, requires_grad=True)
y = w * 2
if args.a:
    z = y.exp()
    y = z
if args.b:
    print(1)
else:
    y += 1
y.sum().backward()
"""
    found = report_on(shaped(body.lstrip(), "script")).findings
    assert "GS101" in {finding.code for finding in found}


def test_two_flags_that_are_both_needed_are_seen_together() -> None:
    lines = ["w = torch.ones(3, requires_grad=True)", "y = w.exp()"]
    for flag, statement in enumerate(["print(0)", "y.add_(1)", "print(2)", "y.sum().backward()", "print(4)"]):
        lines += [f"if args.f{flag}:", f"    {statement}"]
    assert "GS101" in codes(shaped("\n".join(lines) + "\n", "script"))


def test_what_is_missing_is_not_concluded_from_a_path_that_passes_by() -> None:
    body = """
w = torch.ones(3, requires_grad=True)
if args.learn:
    y = w * 2
else:
    y = torch.ones(3)
if args.skip:
    print(1)
else:
    y.sum().backward()
"""
    assert codes(shaped(body.lstrip(), "script")) == set()


def test_gradients_that_one_of_two_flags_clears_are_not_called_never_cleared() -> None:
    body = """
net = nn.Linear(8, 8)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
from data import loader
for x, y in loader:
    if args.before:
        opt.zero_grad()
    F.mse_loss(net(x), y).backward()
    opt.step()
    if args.after:
        opt.zero_grad()
"""
    assert codes(shaped(body.lstrip(), "script")) == set()


@pytest.mark.parametrize("condition", ["args.f", "not args.f", "args.deep.f"])
def test_a_name_from_a_module_that_is_not_there_may_be_false(condition: str) -> None:
    for arms in (("y += 1", "pass"), ("pass", "y += 1")):
        body = f"w = torch.ones(3, requires_grad=True)\ny = w.exp()\nif {condition}:\n    {arms[0]}\nelse:\n    {arms[1]}\n"
        assert "GS101" in codes(shaped(body + "y.sum().backward()\n", "script"))


def test_arms_that_no_path_was_left_for_are_said() -> None:
    lines = ["w = torch.ones(3, requires_grad=True)", "y = w.exp()"]
    for arm in range(120):
        lines += [f"{'elif' if arm else 'if'} args.mode == 'm{arm}':", "    y.add_(1)"]
    report = report_on(shaped("\n".join([*lines, "y.sum().backward()"]) + "\n", "script"))
    told = [gap for gap in report.gaps if gap.kind == "budget"]
    found = {finding.span.line for finding in report.findings if finding.code == "GS101"}
    assert told
    assert all("branch was not analysed" in gap.reason for gap in told)
    assert found
    assert found.isdisjoint(gap.line for gap in told)
    assert len(found) + len(told) == 120


REFUSING = """
class Attention(nn.Module):
    def __init__(self, dim, heads, kind):
        super().__init__()
        {before}
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        y = self.proj(x).exp()
        y += 1
        return y
"""
CHECKS = """if dim % heads != 0:
            raise ValueError("dim")
        if heads == 3:
            message = f"{heads} heads"
            raise ValueError(message)
        if kind == "none":
            raise ValueError(kind)"""


def test_an_arm_that_only_raises_gets_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, checked = (HEAD + REFUSING.replace("{before}", text) for text in ("pass", CHECKS))
    assert paths_of(monkeypatch, checked) == paths_of(monkeypatch, plain)
    assert codes(checked) == codes(plain) == {"GS101"}


def test_an_arm_that_raises_where_the_error_is_caught_gets_one() -> None:
    body = """
    w = torch.ones(3, requires_grad=True)
    y = w.exp()
    try:
        if args.strict:
            raise ValueError
    except ValueError:
        y = y.add_(1)
    y.sum().backward()
    """
    assert "GS101" in codes(shaped(textwrap.dedent(body), "function"))


LOGGING = """
def level(name):
    {checks}
    return name

def logger(name):
    return level(name)
"""
MODEL = "import torch\nfrom torch import nn\nfrom logs import logger\nlog = logger(__name__)\n"
TRAINS = MODEL + "w = torch.ones(3, requires_grad=True)\ny = w.exp()\ny.add_(log)\ny.sum().backward()\n"


@pytest.mark.parametrize(("text", "most"), [(MODEL, 1), (TRAINS, 10)])
def test_what_other_files_decide_while_nothing_is_made_gets_no_path(
    monkeypatch: pytest.MonkeyPatch, text: str, most: int
) -> None:
    checks = "\n    ".join(f"if environment.flag{one}:\n        name = {one}" for one in range(4))
    files = {"logs": "import environment\n" + LOGGING.replace("{checks}", checks)}
    executed: list[Any] = []
    monkeypatch.setattr(Explorer, "path_ended", lambda self, machine: executed.append(machine))

    def find(name: str, level: int, importer: str) -> Source | None:
        return Source(f"/nowhere/{name}.py", files[name]) if name in files else None

    report = analyze(Source("/nowhere/goals.py", text), None, find)
    assert (len(executed) == 1) if most == 1 else (1 < len(executed) <= most)
    assert [finding.code for finding in report.findings if finding.severity == "error"] == (
        ["GS101"] if text is TRAINS else []
    )
