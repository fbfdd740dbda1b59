"""Activations that a loss applies once more, or that it misses: softmax before cross entropy, none before `nll_loss`."""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.tensors import Edge, Node, Tensor
from gradsight.model.trace import Applied

SOFTMAX = {"softmax", "Softmax", "softmin"}
SIGMOIDS = {"sigmoid", "Sigmoid"}
TAKES_LOGITS = {"cross_entropy": SOFTMAX, "CrossEntropyLoss": SOFTMAX, "binary_cross_entropy_with_logits": SIGMOIDS, "BCEWithLogitsLoss": SIGMOIDS}  # fmt: skip
WANTS = {
    "binary_cross_entropy": "sigmoid", "BCELoss": "sigmoid", "nll_loss": "log_softmax", "NLLLoss": "log_softmax",
    "kl_div": "log_softmax", "KLDivLoss": "log_softmax",
}  # fmt: skip
"""Losses that take probabilities, or their logarithms, and the operator that makes them of scores."""
PROBABILITIES = SOFTMAX | SIGMOIDS
SCORES = {"Linear", "linear", "Conv1d", "Conv2d", "Conv3d", "conv1d", "conv2d", "conv3d", "Bilinear"}
RESHAPING = {
    "squeeze", "unsqueeze", "view", "reshape", "flatten", "permute", "transpose", "t", "contiguous", "clone", "float",
    "to", "index", "movedim", "view_as", "AsStrided",
}  # fmt: skip
"""Operators after which the values are still those of the activation."""
JOINING = {"stack", "cat", "concat", "concatenate", "hstack", "vstack", "index_put", "index_put_"}
"""Operators whose result has the values of all that they are given."""


class DoubleActivations:
    """Looks at what a loss that takes logits is given."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_applied(self, fact: Applied) -> None:
        if fact.name in TAKES_LOGITS and isinstance(fact.first, Tensor):
            self.check_activated(fact.name, fact.first, fact.node)
        elif fact.name in WANTS and isinstance(fact.first, Tensor):
            self.check_raw(fact.name, fact.first, fact.node)

    def check_raw(self, loss: str, tensor: Tensor, node: ast.AST) -> None:
        """A loss of probabilities is given what a linear layer or a convolution returns."""
        made = makers_of(tensor)
        site = self.path.site(node)
        if made and all(one.op in SCORES and one.requires is True for one in made):
            steps = [Step("made", made[0].site, "these are raw scores"), *self.path.call_steps(site)]
            self.claims.add("softmax-before-loss", site, steps, op=WANTS[loss], loss=loss, missing=True)
        elif made and WANTS[loss] == "log_softmax" and all(one.op in PROBABILITIES for one in made):
            steps = [
                Step("made", made[0].site, f"`{made[0].op}` makes probabilities here"),
                *self.path.call_steps(site),
            ]
            self.claims.add("softmax-before-loss", site, steps, op=made[0].op, loss=loss, no_log=True)

    def check_activated(self, loss: str, tensor: Tensor, node: ast.AST) -> None:
        made = makers_of(tensor)
        if made and all(one.op in TAKES_LOGITS[loss] for one in made):
            grad_node = made[0]
            steps = [
                Step("made", grad_node.site, f"`{grad_node.op}` is applied here"),
                *self.path.call_steps(self.path.site(node)),
            ]
            self.claims.add("softmax-before-loss", self.path.site(node), steps, op=grad_node.op, loss=loss)


def makers_of(tensor: Tensor) -> list[Node]:
    """The operators that made the values of a tensor, all that are recorded; none if a leaf is among them."""
    found: list[Node] = []
    seen: set[Node] = set()
    todo: list[Edge] = [tensor.node] if tensor.node is not None else []
    while todo:
        node = todo.pop()
        if not isinstance(node, Node):
            return []
        if node in seen:
            continue
        seen.add(node)
        if node.op in JOINING or (node.op in RESHAPING and len(node.inputs) == 1):
            todo.extend(node.inputs)
        else:
            found.append(node)
    return sorted(found, key=lambda node: node.site.line)
