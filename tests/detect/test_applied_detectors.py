"""Steps and writes by row numbers, each detector tried alone by a few facts."""

from __future__ import annotations

from gradsight.detect.applied_twice import AppliedTwice
from gradsight.detect.gradient_ledger import GradientLedger
from gradsight.detect.stepped_again import SteppedAgain
from gradsight.detect.summed_rows import SummedRows
from gradsight.interp.tensors.training import Action
from gradsight.model.trace import Backward, Cleared, RowsWritten, Stepping
from tests.detect.staging import Stage, run_of


def two_steps(second: str) -> list[tuple[str, int]]:
    stage = Stage("loss.backward()\none.step()\nother.step()")
    shared = stage.tensor("loss", "shared", is_parameter=True)
    own = stage.tensor("loss", "own", is_parameter=True)
    loss = stage.tensor("loss", "loss", "mean", (shared, own))
    one = stage.optimizer("one", shared)
    other = stage.optimizer("other", *([shared] if second == "shared" else [own]))
    ledger = GradientLedger(stage, stage.claims)
    detector = AppliedTwice(stage, stage.claims, ledger)
    stage.hears(ledger, Backward(run_of(stage, "loss.backward()", loss, shared, own)))
    stage.hears(detector, Stepping(one, stage.at("one.step()")))
    ledger.records[shared].pending = False
    return stage.hears(detector, Stepping(other, stage.at("other.step()")))


def test_a_parameter_that_two_steps_move_by_one_gradient_is_told() -> None:
    assert two_steps("shared") == [("gradients-applied-twice", 3)]


def steps_for_two_losses(is_cleared: bool) -> list[tuple[str, int]]:
    stage = Stage(
        "opt.zero_grad()\nfirst.backward()\nopt.step()\nopt.zero_grad()\nsecond.backward()\nopt.step(0)"
    )
    weight = stage.tensor("first", "weight", is_parameter=True)
    optimizer = stage.optimizer("opt", weight)
    ledger = GradientLedger(stage, stage.claims)
    detector = SteppedAgain(stage, stage.claims, ledger)
    for loss_name, step in (("first", "opt.step()"), ("second", "opt.step(0)")):
        if loss_name == "first" or is_cleared:
            stage.tick += 1
            stage.hears(ledger, Cleared([weight], False, stage.at("opt.zero_grad()")))
        stage.tick += 1
        loss = stage.tensor(loss_name, "loss", "mean", (weight,))
        stage.hears(ledger, Backward(run_of(stage, f"{loss_name}.backward()", loss, weight)))
        stage.tick += 1
        stage.log.append(Action("step", optimizer, stage.at(step), stage.tick))
    return stage.hears(detector, finish=True)


def test_gradients_that_the_step_for_a_second_loss_applies_again_are_told() -> None:
    assert steps_for_two_losses(is_cleared=False) == [("gradients-stepped-again", 5)]


def test_a_second_loss_after_a_clear_is_not_told() -> None:
    assert steps_for_two_losses(is_cleared=True) == []


def test_steps_over_other_parameters_are_not_told() -> None:
    assert two_steps("own") == []


def rows(index: str) -> list[tuple[str, int]]:
    stage = Stage(f"rows = {index}\ngrid[rows] += values")
    grid = stage.tensor("grid", "grid", requires_grad=False, shape=(8, 2))
    numbers = stage.tensor(index, "rows", requires_grad=False, shape=(5,), dtype="int")
    values = stage.tensor("values", "values", "mul")
    return stage.hears(
        SummedRows(stage, stage.claims),
        RowsWritten(grid, numbers, values, stage.find("grid[rows] += values")),
    )


def test_a_sum_by_numbers_that_were_drawn_is_told() -> None:
    assert rows("torch.randint(0, 8, (5,))") == [("alias-read-after-write", 2)]


def test_a_sum_by_numbers_that_come_once_is_not_told() -> None:
    assert rows("torch.randperm(8)[:5]") == []
