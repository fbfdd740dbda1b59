"""Predictions that torch raises no error for: what a run confirms, what it refutes, and where it keeps silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradsight.model.finding import Finding, Related, Role
from gradsight.model.source import Span
from gradsight.probe.document import document_of
from gradsight.probe.request import ProbeRequest
from gradsight.probe.standby import Standby
from gradsight.session.evidence import Verdict
from gradsight.session.traces import traces_of
from gradsight.session.verdicts import judge, visited_lines
from tests.probe.expectation import PYTHON

LOOP = """\
import torch
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range({rounds}):
    {clear}
    hidden = net(torch.randn(3, 2))
    loss = ({loss}).pow(2).mean()
    loss.backward()
    optimizer.step()
"""
CLEARED = "optimizer.zero_grad()"
SAVED = """\
import torch
x = torch.ones(3, requires_grad=True)
{first}
{second}
y.sum().backward()
"""
GRADIENT = """\
import torch
w = torch.ones(3, requires_grad=True)
(w * 2).sum().backward()
kept = w.grad
{then}
"""
ALIAS = """\
import torch
a = torch.ones(3)
b = {right}
a += 1
print(b)
"""


def loop(rounds: int = 3, clear: str = CLEARED, loss: str = "hidden") -> str:
    return LOOP.format(rounds=rounds, clear=clear, loss=loss)


@pytest.mark.parametrize(
    ("text", "code", "line", "roles", "verdict"),
    [
        # A cut that the loss knows nothing of is none; a detached part of the loss is one.
        (loop(), "GS203", 6, {"needed": 8}, "refuted"),
        (loop(loss="hidden - hidden.detach().mean()"), "GS203", 7, {"needed": 8}, "confirmed"),
        (loop(loss="hidden - float(hidden.norm())"), "GS202", 7, {"needed": 8}, "confirmed"),
        # Gradients that are cleared between steps; with a single step nobody knows.
        (loop(), "GS501", 8, {}, "refuted"),
        (loop(rounds=1), "GS501", 8, {}, "undecided"),
        (loop(clear="pass"), "GS501", 8, {}, "confirmed"),
        # Steps that find a gradient.
        (loop(), "GS503", 9, {}, "refuted"),
        (loop(), "GS502", 5, {}, "refuted"),
        (loop(), "GS504", 2, {"made": 3}, "refuted"),
        (loop(), "GS208", 7, {"needed": 8}, "refuted"),
        # A silent write before the save is harmless, one after it is not.
        (SAVED.format(first="x.data.mul_(2)", second="y = x * x"), "GS104", 3, {"needed": 5}, "refuted"),
        (SAVED.format(first="y = x * x", second="x.data.mul_(2)"), "GS104", 4, {"saved": 3, "needed": 5}, "confirmed"),
        # A gradient that nobody overwrites; one that is overwritten and not read again stays open.
        (GRADIENT.format(then="print(kept * 2)"), "GS302", 4, {"read": 5}, "refuted"),
        (GRADIENT.format(then="w.grad.zero_()"), "GS302", 4, {}, "undecided"),
        # One memory under two names, and a copy.
        (ALIAS.format(right="a[:]"), "GS107", 4, {"made": 3, "read": 5}, "confirmed"),
        (ALIAS.format(right="a.clone()"), "GS107", 4, {"made": 3, "read": 5}, "undecided"),
    ],
)  # fmt: skip
def test_a_run_says_of_a_silent_prediction_what_it_saw(
    standby: Standby,
    tmp_path: Path,
    text: str,
    code: str,
    line: int,
    roles: dict[Role, int],
    verdict: Verdict,
) -> None:
    path = tmp_path / "program.py"
    path.write_text(text)
    outcome = standby.run(ProbeRequest(PYTHON, script=str(path), timeout=60, seed=0, touches=True))
    report = getattr(outcome, "report", None) or {}
    related = tuple(Related(role, "", str(path), row(at)) for role, at in roles.items())
    finding = Finding(code, "", "", "warning", "certain", str(path), row(line), related=related)
    [first, *_] = judge(
        [finding], document_of(outcome), visited_lines(report), text, str(path), traces_of(report)
    )
    assert first.verdict == verdict


def row(line: int) -> Span:
    return Span(line, 0, line, 1)
