"""What is said about a repair that was tried: gone or not, and what became of the gradients."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from gradsight.probe import trial
from gradsight.probe.outcome import Observed, Outcome, Raised, TimedOut
from gradsight.probe.request import ProbeRequest
from gradsight.probe.standby import Standby

BROKEN = """import torch
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x.exp()
y *= 3
y.sum().backward()
"""


def check(
    standby: Standby, folder: Path, code: str, before: str, after: str, good: bool, sentence: str
) -> None:
    """A program before and after a repair, run as the editor runs them."""
    base = ProbeRequest(sys.executable, script=str(folder / "program.py"), text=before, timeout=60, seed=0)
    seen, right = str(folder / "seen.pt"), str(folder / "right.pt")
    first = standby.run(trial.before(base, seen))
    compared = seen if isinstance(first, Observed) else None
    reference = trial.reference(base, code, right)
    if reference is not None:
        compared = right if isinstance(standby.run(reference), Observed) else None
    repaired = ProbeRequest(sys.executable, script=str(folder / "program.py"), text=after, timeout=60, seed=0)
    second = standby.run(trial.after(repaired, compared))
    result = trial.judged(code, first, second, compared is not None)
    assert (result.is_good, result.sentence) == (good, sentence)
    assert result.torch


def test_equal_gradients_verify_a_repair(standby: Standby, tmp_path: Path) -> None:
    after = BROKEN.replace("y *= 3", "y = y * 3")
    check(standby, tmp_path, "GS101", BROKEN, after, True, "no error; gradients match")


def test_other_gradients_are_named_with_their_amount(standby: Standby, tmp_path: Path) -> None:
    after = BROKEN.replace("y *= 3", "y = y * 6")
    sentence = "no error; gradients differ from the reference: x by 50 %"
    check(standby, tmp_path, "GS101", BROKEN, after, False, sentence)


def test_a_fault_that_stays_is_said(standby: Standby, tmp_path: Path) -> None:
    after = BROKEN.replace("y *= 3", "y.mul_(3)")
    check(standby, tmp_path, "GS101", BROKEN, after, False, "the fault is still there")


def test_a_new_error_is_said(standby: Standby, tmp_path: Path) -> None:
    after = BROKEN.replace("y *= 3", "y = y.detach()")
    sentence = (
        "the fixed program raises RuntimeError: "
        "element 0 of tensors does not require grad and does not have a grad_fn"
    )
    check(standby, tmp_path, "GS101", BROKEN, after, False, sentence)


def test_a_silent_write_is_compared_with_the_gradient_of_the_old_value(
    standby: Standby, tmp_path: Path
) -> None:
    before = "import torch\nx = torch.ones(2, requires_grad=True)\ny = x * x\nx.data.mul_(10)\ny.sum().backward()\n"
    after = before.replace("x.data.mul_(10)", "z = x.detach() * 10")
    check(standby, tmp_path, "GS104", before, after, True, "the fault is gone; gradients match")


def test_parameters_that_gain_a_gradient_are_named(standby: Standby, tmp_path: Path) -> None:
    before = (
        "import torch\nfirst, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)\n"
        "optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)\n"
        "second(first(torch.ones(1, 2)).detach()).sum().backward()\noptimizer.step()\n"
    )
    after = before.replace(".detach()", "")
    sentence = "the fault is gone; first.bias, first.weight now have a gradient"
    check(standby, tmp_path, "GS203", before, after, True, sentence)


def test_a_program_that_shows_no_fault_verifies_nothing(standby: Standby, tmp_path: Path) -> None:
    quiet = BROKEN.replace("y *= 3", "y = y * 3")
    sentence = "the program does not show the fault, so there is nothing to compare"
    check(standby, tmp_path, "GS101", quiet, quiet, False, sentence)


def report(**changes: Any) -> dict[str, Any]:
    return {"faults": [], "error": None, "torch": "2.13.0+cpu", **changes}


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        (TimedOut(1.0), "the fixed program did not finish"),
        (
            Observed(report(faults=[{"code": "GS203"}])),
            "the fault is gone, but the fixed program has GS203",
        ),
    ],
)
def test_a_repair_that_brings_something_else_is_not_good(second: Outcome, sentence: str) -> None:
    first = Raised(report(faults=[{"code": "GS101"}], error={"type": "RuntimeError", "message": "modified"}))
    result = trial.judged("GS101", first, second, False)
    assert (result.is_good, result.sentence) == (False, sentence)
