"""Optimizers that torch stops at a step: they do not take sparse gradients, or take nothing else.

A gradient is *sparse* if all that computes with the parameter is an embedding with `sparse=True`: one other use makes it dense.
"""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Applied, Stepping, Used

EMBEDDINGS = {"Embedding", "EmbeddingBag"}
REFUSING = {
    "Adam", "AdamW", "Adadelta", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "ASGD", "Adafactor", "Muon",
}  # fmt: skip
"""What torch's optimizers say of themselves: `Adam does not support sparse gradients`."""
DECAYING = {"SGD", "Adagrad"}
"""They take sparse gradients as long as no weight decay is to be added, which is dense."""


class SparseGradients:
    """Remembers who computes with each parameter, and looks at what an optimizer is about to step."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.looked_up: dict[Tensor, set[ast.AST]] = {}
        """Parameters of sparse embeddings, and the calls of these."""
        self.used: dict[Tensor, set[ast.AST]] = {}
        self.told = False

    def on_used(self, fact: Used) -> None:
        for value in fact.arguments.values():
            if type(value) is Tensor and value.is_parameter:
                self.used.setdefault(value, set()).add(fact.node)

    def on_applied(self, fact: Applied) -> None:
        if fact.name in EMBEDDINGS and (fact.options or {}).get("sparse") is True:
            for value in fact.arguments:
                if type(value) is Tensor and value.is_parameter:
                    self.looked_up.setdefault(value, set()).add(fact.node)

    def on_stepping(self, fact: Stepping) -> None:
        name = fact.optimizer.path.rpartition(".")[2]
        if self.told or fact.optimizer.escaped or not fact.optimizer.path.startswith("torch.optim."):
            return
        for leaf in self.path.parameters_of(fact.optimizer):
            if not isinstance(leaf.grad, Tensor) or leaf not in self.used:
                continue
            is_sparse = leaf in self.looked_up and self.used[leaf] <= self.looked_up[leaf]
            is_dense = leaf not in self.looked_up
            refused = is_sparse and (name in REFUSING or (name in DECAYING and decays(fact.optimizer, leaf)))
            if refused or (is_dense and name == "SparseAdam"):
                self.told = True
                steps = [
                    Step(
                        "made",
                        leaf.site,
                        "this parameter gets a sparse gradient"
                        if refused
                        else "this parameter gets a dense gradient",
                    )
                ]
                self.claims.add(
                    "optimizer-refused",
                    fact.site,
                    steps,
                    target=name,
                    reason="sparse" if refused else "dense",
                )
                return


def decays(optimizer: Optimizer, leaf: Tensor) -> bool:
    """Whether the group of a parameter has a weight decay that is known not to be zero."""
    for group in optimizer.groups():
        listed = group.items.get("params")
        if leaf in getattr(listed, "items", ()):
            decay = group.items.get("weight_decay", optimizer.options.get("weight_decay"))
            return isinstance(decay, (int, float)) and decay > 0
    return False
