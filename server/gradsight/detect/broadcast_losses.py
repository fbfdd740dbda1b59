"""Losses that compare every prediction with every target: `(N, 1)` against `(N,)` is broadcast to `(N, N)`.

A loss function of torch compares element by element, so there the two shapes are enough.  A difference of a column and a row is
also how pairs are made on purpose: it counts where the column is what a linear layer returned, as many rows as the other has.
"""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.tensors import Node, Tensor
from gradsight.model.trace import Applied, Used

LOSSES = {
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss",
}  # fmt: skip
SCORES = {"Linear", "linear", "addmm"}
ACTIVATIONS = {"sigmoid", "tanh", "relu", "softplus", "exp", "Sigmoid", "Tanh", "ReLU", "Softplus"}


class BroadcastLosses:
    """Looks at the shapes of what is compared."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_applied(self, fact: Applied) -> None:
        if fact.name in LOSSES and len(fact.arguments) >= 2:
            one, other = fact.arguments[:2]
            if isinstance(one, Tensor) and isinstance(other, Tensor) and may_learn(one, other):
                texts = self.operands(fact.node)
                if crosses(one, other):
                    self.claim(fact.node, *texts)
                elif crosses(other, one):
                    self.claim(fact.node, texts[1], texts[0])

    def on_used(self, fact: Used) -> None:
        node = fact.node
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
            return
        one, other = fact.arguments.get("self"), fact.arguments.get("other")
        if not isinstance(one, Tensor) or not isinstance(other, Tensor):
            return
        column, row = (one, other) if crosses(one, other) else (other, one)
        is_target = row.needs_grad() is False and column.needs_grad() is not False
        if crosses(column, row) and is_target and is_score(column.node):
            rows = column.shape[0] if column.shape is not None else None
            if rows is not None and row.shape is not None and row.shape[0] == rows:
                texts = [ast.unparse(node.left), ast.unparse(node.right)]
                self.claim(node, *(texts if column is one else texts[::-1]))

    def operands(self, node: ast.AST) -> tuple[str, str]:
        given = node.args[:2] if isinstance(node, ast.Call) else []
        texts = [ast.unparse(one) for one in given]
        return (texts[0], texts[1]) if len(texts) == 2 else ("the prediction", "the target")

    def claim(self, node: ast.AST, one: str, other: str) -> None:
        site = self.path.site(node)
        steps: list[Step] = [*self.path.call_steps(site)]
        self.claims.add("loss-broadcast", site, steps, target=one, source=other)


def may_learn(one: Tensor, other: Tensor) -> bool:
    return one.needs_grad() is not False or other.needs_grad() is not False


def crosses(column: Tensor, row: Tensor) -> bool:
    """Whether the shapes are `(N, 1)` and `(N,)`, with more than one row."""
    tall, flat = column.shape, row.shape
    if tall is None or flat is None or len(tall) != 2 or len(flat) != 1 or tall[1] != 1:
        return False
    return 1 not in (tall[0], flat[0]) and (tall[0] == flat[0] or None in (tall[0], flat[0]))


def is_score(node: Node | None) -> bool:
    """Whether a linear layer made it, with at most some activations behind."""
    for _ in range(4):
        if not isinstance(node, Node):
            return False
        if node.op in SCORES:
            return True
        if node.op not in ACTIVATIONS or len(node.inputs) != 1:
            return False
        source = node.inputs[0]
        node = source if isinstance(source, Node) else None
    return False
