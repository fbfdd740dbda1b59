"""Softmaxes over one element: the result is one whatever they are given, and so nothing before them learns.

`nn.Linear(8, 1)` before `softmax(dim=1)`, the weight of a single expert, `cross_entropy` of one class, whose loss is always zero.
Attention may begin with one key and get more: a place is told only where all of its calls have one element.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Node, Tensor
from gradsight.model.trace import Applied

SOFTMAXES = {"softmax", "Softmax", "log_softmax", "LogSoftmax"}
LOSSES = {"cross_entropy", "CrossEntropyLoss"}


class EvenSoftmaxes:
    """Remembers over how many elements each of them goes."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.even: dict[ast.AST, tuple[str, Node, Site]] = {}
        self.uneven: set[ast.AST] = set()

    def on_applied(self, fact: Applied) -> None:
        if fact.name not in SOFTMAXES and fact.name not in LOSSES:
            return
        first, result = fact.first, fact.result
        if not isinstance(first, Tensor) or not isinstance(result, Tensor) or first.shape is None:
            self.uneven.add(fact.node)
            return
        dimension = 1 if fact.name in LOSSES else dimension_of(fact)
        if (
            dimension is None
            or not -len(first.shape) <= dimension < len(first.shape)
            or first.shape[dimension] != 1
        ) or not says_one(first.node):
            self.uneven.add(fact.node)
        elif result.node is not None and result.needs_grad() is True and not self.path.frame.unit.library:
            self.even[fact.node] = (fact.name, result.node, self.path.site(fact.node))

    def finish(self) -> None:
        for node, (name, made, site) in self.even.items():
            if node not in self.uneven and made.walked is not None:
                steps = [Step("needed", made.walked, "this backward"), *self.path.call_steps(site)]
                self.claims.add("gradient-even", site, steps, op=name)


def says_one(node: Node | None) -> bool:
    """Whether the layer that made the one element was made with a `1` in the text: the length of a vocabulary is counted too low."""
    while node is not None:
        weights = [edge for edge in node.inputs if isinstance(edge, Tensor) and edge.is_parameter]
        if weights:
            places = [site for weight in weights for site in (weight.site, *weight.site.callers())]
            return any(has_one(place.node) for place in places)
        before = [edge for edge in node.inputs if isinstance(edge, Node)]
        node = before[0] if len(before) == 1 else None
    return False


def has_one(made: ast.AST) -> bool:
    given = [*made.args, *(one.value for one in made.keywords)] if isinstance(made, ast.Call) else []
    return any(isinstance(one, ast.Constant) and one.value == 1 for one in given)


def dimension_of(fact: Applied) -> int | None:
    """The dimension that a softmax goes over, where the text or its layer says so."""
    options: Any = fact.options or {}
    if isinstance(options.get("dim"), int):
        return int(options["dim"])
    call = fact.node
    if not isinstance(call, ast.Call):
        return None
    given = next((word.value for word in call.keywords if word.arg in ("dim", "axis")), None)
    if given is None and fact.name in ("softmax", "log_softmax"):
        is_method = not isinstance(fact.options, dict) and call.args and isinstance(call.func, ast.Attribute)
        given = call.args[-1] if is_method else None
    try:
        value = ast.literal_eval(given) if given is not None else None
    except ValueError:
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
