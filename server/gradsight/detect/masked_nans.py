"""NaN that is masked in a result and not in its gradient: `torch.where(count == 0, zeros, total / count)`.

Backward multiplies: the arm that was not taken gets a gradient of zero, and zero times the infinite derivative of a division by
zero, or of a root or logarithm of zero, is NaN.  A *guard* compares a tensor with a number and so tells where it is zero; what it is
to protect is computed from that same tensor.  Who divides by another one, which is never zero, is right.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Edge, Node, Tensor
from gradsight.model.trace import Combined, Used

STEEP = {"sqrt", "rsqrt", "log", "log2", "log10", "reciprocal"}
"""Operators whose derivative is infinite where their operand is zero."""
KEEPS_ZERO = {
    "sqrt",
    "abs",
    "square",
    "pow",
    "neg",
    "to",
    "float",
    "double",
    "unsqueeze",
    "view",
    "reshape",
    "expand",
}
SHIFTING = {
    "add",
    "clamp",
    "clamp_min",
    "clip",
    "maximum",
    "exp",
    "softmax",
    "sigmoid",
    "softplus",
    "cosh",
    "where",
}
"""What makes a divisor that is not zero, if the text is right."""
SELECTING = {"where", "masked_fill", "masked_fill_"}
DEEPEST = 4
MOST = 200


class Masked(NamedTuple):
    """A result whose NaN is hidden."""

    made: Node
    steep: Node
    zero: Tensor
    op: str


class MaskedNans:
    """Remembers guards and products, and looks into what is masked."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.guards: dict[Tensor, tuple[Tensor, bool]] = {}
        """A comparison, with what was compared, and whether it holds where that is zero."""
        self.products: dict[Tensor, tuple[Tensor, Tensor]] = {}
        self.masked: dict[ast.AST, tuple[Masked, Site]] = {}

    def on_combined(self, fact: Combined) -> None:
        left, right, result = fact.left, fact.right, fact.result
        if not isinstance(result, Tensor):
            return
        if fact.operator in ("__mul__", "__rmul__"):
            if len(self.products) < MOST:
                self.products[result] = (left, right if isinstance(right, Tensor) else left)
        elif isinstance(right, (int, float)) and not isinstance(right, bool):
            holds = holds_at_zero(fact.operator, right)
            if holds is not None and len(self.guards) < MOST:
                self.guards[result] = (left, holds)

    def on_used(self, fact: Used) -> None:
        given = fact.arguments
        if fact.node in self.masked or self.path.frame.unit.library:
            return
        found: Masked | None = None
        if "condition" in given and "other" in given:
            guard = self.guards.get(given["condition"]) if type(given["condition"]) is Tensor else None
            if guard is not None:
                compared, holds = guard
                found = self.look(
                    given["other"] if holds else given.get("input", given.get("self")), compared, "where"
                )
        elif "mask" in given and "value" in given and type(given["mask"]) is Tensor:
            guard = self.guards.get(given["mask"])
            if guard is not None and guard[1]:
                found = self.look(given.get("self", given.get("input")), guard[0], "masked_fill")
        elif len(given) <= 4 and called(fact.node) == "nan_to_num":
            found = self.look(given.get("self", given.get("input")), None, "nan_to_num")
        if found is not None and len(self.masked) < MOST:
            self.masked[fact.node] = (found, self.path.site(fact.node))

    def look(self, arm: Any, compared: Tensor | None, op: str) -> Masked | None:
        """What is steep at zero in an arm of the graph, a few operators deep."""
        if not isinstance(arm, Tensor) or arm.node is None or arm.node.requires is not True:
            return None
        level = [arm.node]
        for _ in range(DEEPEST):
            for node in level:
                zero = divisor(node)
                if zero is not None and (
                    is_bare(zero) if compared is None else self.is_zero_with(zero, compared)
                ):
                    return Masked(arm.node, node, compared or zero, op)
            level = [edge for node in level for edge in node.inputs if isinstance(edge, Node)]
        return None

    def is_zero_with(self, tensor: Tensor, compared: Tensor, depth: int = DEEPEST) -> bool:
        """Whether a tensor is zero wherever the other one is."""
        if tensor is compared or tensor.storage is compared.storage:
            return True
        if not depth:
            return False
        factors = self.products.get(tensor)
        if factors is None and tensor.node is not None and tensor.node.op in KEEPS_ZERO:
            factors = tuple(tensor.node.operands[:1]) * 2  # type: ignore[assignment]
        return any(self.is_zero_with(one, compared, depth - 1) for one in factors or ())

    def finish(self) -> None:
        for masked, site in self.masked.values():
            if masked.made.walked is None or is_masked_below(masked.steep):
                continue
            steps = [
                Step("made", masked.steep.site, "the derivative is infinite here where it is zero"),
                Step("needed", masked.made.walked, "this backward"),
                *self.path.call_steps(site),
            ]
            names = {"op": masked.op, "target": masked.zero.label, "steep": masked.steep.op}
            self.claims.add("gradient-is-nan", site, steps, **names)


def holds_at_zero(operator: str, number: float) -> bool | None:
    """What a comparison with a number says of zero, where zero is what it is about."""
    if operator in ("__eq__", "__ne__"):
        return (operator == "__eq__") if number == 0 else None
    if operator in ("__lt__", "__le__"):
        return True if 0 < number < 1 or (number == 0 and operator == "__le__") else None
    if operator in ("__gt__", "__ge__"):
        return False if 0 < number < 1 or (number == 0 and operator == "__gt__") else None
    return None


def is_masked_below(node: Node) -> bool:
    """Whether all that a node was computed from was selected itself: backward through a selection drops what is NaN."""
    todo: list[Edge] = [*node.inputs]
    seen: set[Edge] = set()
    while todo:
        edge = todo.pop()
        if isinstance(edge, Tensor):
            return False
        if edge not in seen and edge.op not in SELECTING:
            seen.add(edge)
            if not edge.inputs:
                return False
            todo.extend(edge.inputs)
    return True


def divisor(node: Node) -> Tensor | None:
    """The operand at whose zero the derivative of an operator is infinite."""
    if node.op in STEEP and node.operands:
        return node.operands[0]
    return node.operands[1] if node.op in ("div", "true_divide") and len(node.operands) == 2 else None


def is_bare(tensor: Tensor) -> bool:
    """Whether nothing in the text keeps a divisor away from zero."""
    if tensor.is_parameter:
        return False
    made = tensor.site.node
    name = "add" if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Add) else called(made)
    return name not in SHIFTING and (tensor.node is None or tensor.node.op not in SHIFTING)


def called(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
