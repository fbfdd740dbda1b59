"""Detectors of work that is left undone: terms of no loss, copies onto oneself, averages without statistics."""

from __future__ import annotations

from typing import Any

from gradsight.detect.left_statistics import LeftStatistics
from gradsight.detect.lost_updates import LostUpdates
from gradsight.detect.unused_terms import UnusedTerms
from gradsight.model.library_objects import Optimizer
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Assigned, Backward, BackwardRun, NameRead, Stepped, Used, Wrote
from gradsight.model.values import Seq
from tests.detect.staging import Stage

LOOP = """
weight = make()
penalty = weight.norm()
loss = weight.sum()
loss.backward()
optimizer.step()
"""


def with_a_term(text: str = LOOP) -> tuple[Stage, UnusedTerms, Tensor, list[Any]]:
    stage = Stage(text)
    weight = stage.tensor("make()")
    term = stage.tensor("weight.norm()", op="norm", inputs=(weight,), shape=())
    loss = stage.tensor("weight.sum()", op="sum", inputs=(weight,), shape=())
    stage.names["penalty"] = term
    run = BackwardRun(stage.at("loss.backward()"), loss, {weight}, frozenset(), 0)
    optimizer = Optimizer("torch.optim.SGD", stage.at("optimizer.step()"), Seq("list", []))
    stage.parameters_of = lambda _: [weight]  # type: ignore[method-assign]
    facts = [
        Assigned(stage.find("penalty = weight.norm()"), 0),
        Backward(run),
        Stepped(optimizer, stage.at("optimizer.step()")),
    ]
    return stage, UnusedTerms(stage, stage.claims), term, facts


def test_a_term_that_nothing_reads_is_claimed_where_a_step_moves_its_parameters() -> None:
    stage, detector, _, facts = with_a_term()
    assert stage.hears(detector, *facts, finish=True) == [("term-unused", 2)]


def test_a_term_that_is_read_after_the_step_is_not_claimed() -> None:
    stage, detector, _, facts = with_a_term()
    read = NameRead("penalty", stage.find("weight"))
    assert stage.hears(detector, *facts, read, finish=True) == []


def test_a_term_that_is_read_is_not_claimed() -> None:
    stage, detector, _, facts = with_a_term(LOOP + "print(penalty)\n")
    assert stage.hears(detector, *facts, finish=True) == []


def test_a_term_that_is_read_by_a_later_unit_is_not_claimed() -> None:
    stage, detector, _, facts = with_a_term()
    read = NameRead("penalty", stage.find("weight"))
    assert stage.hears(detector, facts[0], read, *facts[1:], finish=True) == []


def test_a_term_without_a_step_is_not_claimed() -> None:
    stage, detector, _, facts = with_a_term()
    assert stage.hears(detector, *facts[:2], finish=True) == []


def test_a_copy_onto_itself_is_a_lost_update() -> None:
    stage = Stage("a = make()\nb = make()\na.copy_(a)\na.copy_(b)\n")
    first, other = stage.tensor("make()"), stage.tensor("make()")
    onto_itself = Used({"self": first, "other": first}, stage.find("a.copy_(a)"))
    from_another = Used({"self": first, "other": other}, stage.find("a.copy_(b)"))
    detector = LostUpdates(stage, stage.claims)
    assert stage.hears(detector, onto_itself, from_another) == [("update-lost", 3)]


def averaged(writes_to_mean: bool) -> list[tuple[str, int]]:
    stage = Stage("make()\nslow.lerp_(fast, 0.1)\nmodel(x)\naverage(x)\n")
    slow, fast, mean, fresh = (stage.tensor("make()") for _ in range(4))
    slow.is_parameter = fast.is_parameter = True
    write = stage.written(slow, "slow.lerp_(fast, 0.1)", "lerp_", mode="no_grad")
    stage.written(mean, "model(x)", "batch_norm", mode="no_grad")
    site = stage.at("slow.lerp_(fast, 0.1)")
    facts = [
        Used({"self.running_mean": mean, "self.weight": fast}, stage.find("model(x)")),
        Wrote(slow, "lerp_", site, [fast], None, write),
        Used({"self.running_mean": fresh, "self.weight": slow}, stage.find("average(x)")),
    ]
    detector = LeftStatistics(stage, stage.claims)
    stage.hears(detector, *facts)
    if writes_to_mean:
        stage.written(fresh, "average(x)", "batch_norm", mode="no_grad")
    return stage.hears(detector, finish=True)


def test_an_average_that_computes_with_fresh_statistics_is_claimed() -> None:
    assert averaged(writes_to_mean=False) == [("statistics-left", 2)]


def test_an_average_that_sees_batches_itself_is_not_claimed() -> None:
    assert averaged(writes_to_mean=True) == []
