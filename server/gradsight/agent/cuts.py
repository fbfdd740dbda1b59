"""Where a path to the loss was cut: the shadow of a loss against its real graph."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradsight.agent.definitions import decorator_of, place_of_expression
from gradsight.agent.faults import Fault, FaultStep, Kind, calls_of, step_at
from gradsight.agent.graph import Node, base_name, leaf_of, walk_nodes
from gradsight.agent.oplog import OpLog, operator_label
from gradsight.agent.shadow import Divergence, Leaf, Mask, Shadow
from gradsight.agent.sites import (
    FrameKey,
    SourceRange,
    Stack,
    line_of,
    place_of,
    statement_of,
    text_of,
    tree_of,
)

# Operators whose derivative is zero everywhere: the graph goes on, the gradient does not.
ZERO_DERIVATIVE = frozenset(
    ("Round", "Floor", "Ceil", "Trunc", "Sign", "Heaviside", "Zero", "Fill", "Normal", "Uniform", "Bernoulli",
     "Random", "Exponential")
)  # fmt: skip

FAULT_OF_CUT: dict[str, Kind] = {
    "tensor": "value-copied",
    "number": "number-taken",
    "implicit": "number-taken",
    "numpy": "number-taken",
    "detach": "detached",
    "data": "detached",
    "no_grad": "computed-without-grad",
    "non-diff": "no-derivative",
    "requires_grad": "cut-hidden",
    "parameter": "parameter-made",
    "create_graph": "penalty-without-graph",
    "checkpoint": "checkpoint-without-grad",
}
_CUT_KINDS = frozenset(FAULT_OF_CUT)
# A cut the author did not write as one: it surprises wherever it stands.
UNINTENDED = frozenset(
    ("tensor", "number", "implicit", "numpy", "non-diff", "requires_grad", "parameter", "create_graph")
)


@dataclass(frozen=True)
class BackwardReach:
    """One backward: the leaves its graph reaches, those it reaches with a gradient, and those that were cut off."""

    index: int
    stack: Stack
    reached: Mask
    alive: Mask
    missing: Mask
    events: Mask


def reach_of(
    index: int,
    roots: Sequence[Any],
    nodes: Sequence[Node],
    shadow: Shadow,
    stack: Stack,
    limit_to: Mask | None,
) -> BackwardReach:
    """Compares the shadow of the roots with the graph under them."""
    deps = events = 0
    for root in roots:
        if isinstance(root, torch.Tensor):
            more, _, passed = shadow.read(root)
            deps |= more
            events |= passed
    reached = _leaves_among(nodes, shadow)
    for root in roots:
        if isinstance(root, torch.Tensor) and root.is_leaf and root.requires_grad:
            leaf = shadow.leaf(root)
            if leaf is not None:
                reached |= 1 << leaf.bit
    if limit_to is not None:
        reached &= limit_to
    alive = reached
    if any(base_name(node.name()) in ZERO_DERIVATIVE for node in nodes):
        starts = [
            root.grad_fn for root in roots if isinstance(root, torch.Tensor) and root.grad_fn is not None
        ]
        alive = _leaves_among(walk_nodes(starts, ZERO_DERIVATIVE), shadow) & reached
    return BackwardReach(index, stack, reached, alive, deps & ~reached if limit_to is None else 0, events)


def _leaves_among(nodes: Sequence[Node], shadow: Shadow) -> Mask:
    mask = 0
    for node in nodes:
        tensor = leaf_of(node)
        if tensor is not None:
            leaf = shadow.leaf(tensor)
            if leaf is not None:
                mask |= 1 << leaf.bit
    return mask


# A leaf made of a cut tensor hides the cut before it; a copy or a number is never meant as a cut; sampling and
# comparing are what programs do beside the path that matters.
WEIGHT_OF_CUT = {
    "requires_grad": 4,
    "parameter": 4,
    "create_graph": 3,
    "tensor": 3,
    "number": 3,
    "implicit": 3,
    "numpy": 3,
    "non-diff": 1,
}


def cutting_events(shadow: Shadow, missing: Mask, events: Mask) -> list[tuple[Divergence, Mask]]:
    """For the missing leaves: the event that cut each, with the leaves it cut.

    A value can pass several cuts and stay connected by another path; the last one passed is where the path was lost.
    """
    passed = [event for event in shadow.events_in(events) if event.kind in _CUT_KINDS and event.stack]
    straight = [event for event in passed if passes_straight_through(event)]
    if straight:
        # Nothing is lost there, nor at what chose the value: a cut beside them is the one to tell.
        meant = [event for event in passed if event not in straight and event.kind != "non-diff"]
        passed = meant or passed
    passed.sort(key=lambda event: (WEIGHT_OF_CUT.get(event.kind, 2), event.passed), reverse=True)
    found: list[tuple[Divergence, Mask]] = []
    rest = missing
    for event in passed:
        covered = event.mask & rest
        if covered:
            found.append((event, covered))
            rest &= ~covered
    return found


def passes_straight_through(event: Divergence) -> bool:
    """`z + (code - z).detach()`: the value of one side with the gradient of the other."""
    if event.kind not in ("detach", "data"):
        return False
    statement = statement_of(event.stack[0])
    for sum_ in ast.walk(statement) if statement is not None else ():
        if isinstance(sum_, ast.BinOp) and isinstance(sum_.op, ast.Add):
            for other, cut in ((sum_.left, sum_.right), (sum_.right, sum_.left)):
                function = cut.func if isinstance(cut, ast.Call) else cut
                inner = function.value if isinstance(function, ast.Attribute) else None
                if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
                    if ast.dump(inner.right) == ast.dump(other):
                        return True
    return False


def cut_fault(
    event: Divergence, leaves: Sequence[Leaf], backward: Stack, shadow: Shadow, raised: str = ""
) -> Fault:
    """The fault of a path that was cut here."""
    kind, place, steps = cut_place(event, shadow, backward)
    who = name_list(leaves)
    message = _cut_message(event, place, who)
    steps += step_at(
        "needed", "the backward that misses them" if not raised else "backward fails here", backward
    )
    evidence: dict[str, Any] = {"parameters": [label(leaf) for leaf in leaves][:20], "count": len(leaves)}
    if raised:
        evidence["torch"] = raised
    return Fault(kind, message, place, tuple(steps), "error" if raised else "warning", evidence)


def cut_place(
    event: Divergence, shadow: Shadow, backward: Stack = ()
) -> tuple[Kind, SourceRange, list[FaultStep]]:
    """The kind of fault that a cut is, the place to change, and the steps that explain it."""
    kind = FAULT_OF_CUT.get(event.kind, "detached")
    key = event.stack[0]
    place = place_of(key)
    steps: list[FaultStep] = []
    if event.kind == "no_grad":
        scope = _helper_call(event.stack, backward) or no_grad_scope(event.stack)
        steps.append(
            FaultStep("cut", f"`{operator_label(event.operator)}` runs here without recording", place)
        )
        if scope is not None:
            place = scope
    elif event.kind in ("requires_grad", "parameter"):
        for inner in shadow.events_in(event.inner):
            if inner.kind in _CUT_KINDS and inner.stack:
                steps += step_at("cut", f"the path is cut here by `{_operator(inner)}`", inner.stack)
    else:
        steps.append(FaultStep("cut", f"cut here by `{_operator(event)}`", place))
    steps += calls_of(event.stack)[:1]
    return kind, place, steps


def _operator(event: Divergence) -> str:
    if event.kind == "data":
        return ".data"
    return operator_label(event.operator)


def _cut_message(event: Divergence, place: SourceRange, who: str) -> str:
    text = text_of(place)
    shown = f"`{text}`" if text else f"`{_operator(event)}`"
    if event.kind == "no_grad":
        return f"computed with grad mode off, so {who} gets no gradient from this loss"
    if event.kind == "requires_grad":
        return f"{shown} starts a new graph on a tensor that was cut off: no gradient reaches {who}"
    if event.kind == "parameter":
        return f"{shown} makes a new leaf of a computed tensor: no gradient reaches {who}"
    if event.kind == "non-diff":
        return f"{shown} has no gradient (`{_operator(event)}`): the path to {who} ends here"
    if event.kind == "create_graph":
        return f"{shown} has no `create_graph=True`: its result is a constant for {who}"
    if event.kind in ("number", "implicit", "numpy"):
        return f"{shown} leaves the graph, and its value comes back into the loss: no gradient reaches {who}"
    return f"{shown} cuts the path from the loss to {who}"


def no_grad_scope(stack: Stack) -> SourceRange | None:
    """The `with torch.no_grad()` or the decorator that switched recording off around these frames."""
    for key in stack:
        found = _enclosing_with(key) or decorator_of(key, _mentions_scope)
        if found is not None:
            return found
    return None


def _helper_call(stack: Stack, backward: Stack) -> SourceRange | None:
    """The call of a helper that never records, straight from the function that calls backward.

    Such a helper is made for inference; what went wrong is that training uses it.
    """
    for inner, outer in zip(stack, stack[1:]):
        if backward and outer.code is backward[0].code and inner.code is not outer.code:
            return place_of(outer) if _never_records(inner) else None
    return None


def _never_records(key: FrameKey) -> bool:
    if decorator_of(key, _mentions_scope) is not None:
        return True
    tree = tree_of(key.code.co_filename)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == key.code.co_name:
            if node.lineno == key.code.co_firstlineno:
                body = [item for item in node.body if not isinstance(item, ast.Expr)]
                return (
                    len(body) == 1
                    and isinstance(body[0], ast.With)
                    and any(_mentions_scope(item.context_expr) for item in body[0].items)
                )
    return False


_SCOPES = ("no_grad", "inference_mode", "set_grad_enabled")


def _enclosing_with(key: FrameKey) -> SourceRange | None:
    filename = key.code.co_filename
    line = line_of(key)
    tree = tree_of(filename)
    if tree is None:
        return None
    best: ast.withitem | None = None
    for node in ast.walk(tree):
        if isinstance(node, (ast.With, ast.AsyncWith)) and node.lineno <= line <= (node.end_lineno or 0):
            if node.lineno < key.code.co_firstlineno:
                continue
            for item in node.items:
                if _mentions_scope(item.context_expr):
                    best = item
    return place_of_expression(key, best.context_expr) if best is not None else None


def _mentions_scope(expression: ast.expr) -> bool:
    return any(
        (isinstance(node, ast.Attribute) and node.attr in _SCOPES)
        or (isinstance(node, ast.Name) and node.id in _SCOPES)
        for node in ast.walk(expression)
    )


def name_list(leaves: Sequence[Leaf]) -> str:
    """`encoder.0.weight` and 3 more parameters."""
    names = [f"`{label(leaf)}`" for leaf in leaves]
    if not names:
        return "the parameters"
    if len(names) == 1:
        return names[0]
    if len(names) == 2:
        return f"{names[0]} and {names[1]}"
    return f"{names[0]} and {len(names) - 1} more parameters"


def label(leaf: Leaf) -> str:
    """The name of a leaf, or its shape when nobody named it."""
    return leaf.name or f"leaf{list(leaf.shape)}"


def zero_path_fault(
    reach: BackwardReach, nodes: Sequence[Node], shadow: Shadow, log: OpLog, trained: Mask
) -> Fault | None:
    """Leaves whose every path runs through an operator with zero derivative."""
    dead = reach.reached & ~reach.alive & trained
    if not dead:
        return None
    for node in nodes:
        name = base_name(node.name())
        if name not in ZERO_DERIVATIVE:
            continue
        below = _leaves_among(walk_nodes([node]), shadow) & dead
        maker = log.maker(node)
        if not below or maker is None or not maker.stack:
            continue
        leaves = shadow.leaves_in(below)
        place = place_of(maker.stack[0])
        message = f"`{text_of(place) or name.lower()}` has derivative zero everywhere: the gradient of {name_list(leaves)} is zero"
        steps = (
            *step_at("cut", f"`{name.lower()}` ends the gradient here", maker.stack),
            *step_at("needed", "this backward", reach.stack),
        )
        return Fault(
            "gradient-zero",
            message,
            place,
            steps,
            "warning",
            {"parameters": [label(leaf) for leaf in leaves][:20]},
        )
    return None
