"""What a program computed or copied in part, told when the run is over: terms of no loss, averages without statistics.

*Unused term*: a scalar of the graph under a name that nothing reads, over parameters that steps have moved.
*Left statistics*: a norm layer in eval mode whose weight was written by hand, and whose running mean is that of a fresh layer,
while the same layer of another model has seen batches.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from typing import Any

import torch

from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.oplog import OpLog
from gradsight.agent.sites import line_of, place_of, tree_of
from gradsight.agent.training import TrainingWatch
from gradsight.agent.unasked import Scalar

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@quietly
def judge_unused_terms(training: TrainingWatch, ledger: Ledger) -> None:
    """Terms that were left out of the loss."""
    moved = 0
    for record in training.optimizers.values():
        moved |= record.ever if record.useful_steps else 0
    for scalar in training.unasked.left():
        if scalar.live & moved & training.ever_reached and is_never_read(scalar):
            message = (
                f"`{scalar.name}` is never used: no backward came through it, so this term trained nothing"
            )
            place = place_of(scalar.stack[0])
            ledger.add(Fault("result-ignored", message, place, (), "warning", {"name": scalar.name}))


def is_never_read(scalar: Scalar) -> bool:
    """Whether the function that binds a name, or the file for a global one, has no place that reads it."""
    frame = scalar.stack[0]
    tree = tree_of(frame.code.co_filename)
    if tree is None or not scalar.name.isidentifier() or scalar.name.startswith("_"):
        return False
    scope: ast.AST = tree
    statement: ast.AST | None = None
    line = line_of(frame)
    for node in ast.walk(tree):
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if first <= line <= last:
            if isinstance(node, _FUNCTIONS):
                scope = node
            elif isinstance(node, ast.Assign) and node.targets[0].lineno == line:
                statement = node
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, (ast.Call, ast.BinOp)):
        return False
    targets = [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return targets == [scalar.name] and not any(reads(node, scalar.name) for node in ast.walk(scope))


def reads(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Store)
    return isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names


@quietly
def judge_left_statistics(log: OpLog, ledger: Ledger) -> None:
    """Averages of models whose norm layers kept the statistics of fresh ones."""
    norms = list(_norms())
    trained = {(type(norm), norm.num_features) for norm in norms if int(norm.num_batches_tracked or 0) > 0}
    for norm in norms:
        weight = norm.weight
        if norm.training or weight is None or int(norm.num_batches_tracked or 0) > 0:
            continue
        writes = log.writes_to(weight) or ()
        by_hand = [
            each
            for each in writes
            if each.stack and not each.by_optimizer and each.name.rpartition("::")[2] in _FOLLOWING
        ]
        if not by_hand or (type(norm), norm.num_features) not in trained or not _is_fresh(norm):
            continue
        message = (
            "the average leaves `running_mean` and `running_var` behind: they are those of a fresh layer"
        )
        steps = step_at("written", "its parameters are moved here", by_hand[-1].stack)
        ledger.add(Fault("statistics-left", message, place_of(by_hand[-1].stack[0]), steps, "warning", {}))
        return


_FOLLOWING = frozenset(("add_", "lerp_", "copy_", "sub_", "data"))


def _norms() -> Iterator[Any]:
    """The norm layers with running statistics that are alive."""
    for thing in gc.get_objects():
        # A proxy would answer `isinstance` by looking at what it stands for.
        if issubclass(type(thing), torch.nn.modules.batchnorm._BatchNorm) and thing.track_running_stats:
            if thing.running_mean is not None and thing.num_batches_tracked is not None:
                yield thing


def _is_fresh(norm: Any) -> bool:
    return not bool(norm.running_mean.any()) and bool((norm.running_var == 1).all())
