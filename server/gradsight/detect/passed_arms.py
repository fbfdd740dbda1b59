"""What the arms that a path went past could have done: whether one of them may be what a conclusion misses.

A path that passes by takes no `if`, as if all flags were off at once.  Flags can depend on each other, so what was not done
on it may be done by an arm that some flag always opens.  Where no arm that it went past says anything of the kind, whether
the flags depend on each other makes no difference.

    if args.log: logger.write(loss)     says nothing of gradients: that nothing is cleared holds without it, too
    if args.fused: fused_clear(model)   may clear: nothing is concluded
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

from gradsight.detect.path import Path
from gradsight.interp.path_state import Arm, Decision
from gradsight.interp.paths.roles import (
    OPTIMIZER,
    SCALER,
    is_scheduler_name,
    key_of,
    last_part,
    may_clear,
    only_watches,
)
from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.name_hints import BY_NAME, suggests
from gradsight.model.values import Unknown
from gradsight.ops.traits import having

OPTIMIZERS = having("optimizers")
MADE, GIVEN, CLEARED, CALLED = "<optimizer made>", "<optimizer given>", "<cleared>", "<called>"
BUILTINS = frozenset(dir(builtins))
COMPUTING = frozenset({"torch", "th", "F", "np", "numpy", "math"})
"""Modules whose functions compute something and differentiate nothing; `torch.autograd.grad` is known by its last word."""
CLEARS = frozenset({"zero_grad", "grad", CLEARED})
HOLDS = frozenset({
    "requires_grad", "requires_grad_", "parameters", "named_parameters", "param_groups", "add_param_group", "eval", "no_grad",
    "detach", "enable_grad", "set_grad_enabled", "inference_mode", MADE,
})  # fmt: skip
MODES = frozenset({"train", "eval", "training"})
SAYS = {
    "gradients-never-cleared": CLEARS,
    "gradients-left-by-step": CLEARS,
    "gradients-stepped-again": CLEARS,
    "parameters-not-optimized": HOLDS,
    "optimizer-never-stepped": frozenset({"step", MADE, GIVEN}),
    "eval-left-on": MODES,
    "step-without-backward": frozenset({"backward", "grad", CALLED}),
}
"""The words of arms that may do what is missing; of other kinds nothing is concluded from such a path."""
VERBS = {
    "gradients-never-cleared": "zero",
    "gradients-left-by-step": "zero",
    "gradients-stepped-again": "zero",
    "optimizer-never-stepped": "step",
    "step-without-backward": "backward",
}
"""What the log of a path calls that which is missing."""


def lifting_arms(kind: str, decisions: Iterable[Decision]) -> frozenset[Arm]:
    """The arms that the path went past and that may do, by their text, what the conclusion says is not done."""
    turns = [turn for decision in decisions for turn in decision.turns]
    taken = set(turns)
    return frozenset(
        (node, not outcome)
        for node, outcome in dict.fromkeys(turns)
        if (node, not outcome) not in taken and may_lift(kind, (node, not outcome))
    )


def is_without(verb: str, path: Path) -> bool:
    """Whether nothing on a path, known or not, can have cleared, stepped or differentiated: no arm of it did, whatever its text says.

    if i % 100 == 0: meter.reset()      a path that was in here and cleared nothing tells that this clears nothing
    """
    if path.ended_early or path.gradients_hooked or any(action.verb == verb for action in path.log):
        return False
    if verb == "zero" and path.cleared_ticks:
        return False
    if verb == "backward":
        return not (path.backwards or path.graph_escaped or path.gradients_unknown)
    return bool(path.optimizers) and not any(
        one.escaped or path.may_clear_between(path.ever_held_by(one), 0, path.tick) for one in path.optimizers
    )


def is_asked_for(kind: str, decisions: Iterable[Decision]) -> bool:
    """Whether an option of the function, which its callers set, was switched off: it stands for what is not done.

    `def run(..., clear=True)` with `if clear: optimizer.zero_grad()`; an arm that differentiates as well clears for itself.
    """
    return any(
        isinstance(decision.key, Unknown)
        and decision.key.hint == "bool"
        and decision.key.reason.startswith("argument ")
        and any(
            may_lift(kind, branch) and not differentiates(branch)
            for branch in ((node, not outcome) for node, outcome in decision.turns)
        )
        for decision in decisions
    )


def may_lift(kind: str, branch: Arm) -> bool:
    """Whether one arm may do what a conclusion of this kind says is not done."""
    words = SAYS.get(kind)
    return words is None or any(
        not words.isdisjoint(remembered(part, "said", said_in)) for part in arm(*branch)
    )


def differentiates(branch: Arm) -> bool:
    return any("backward" in remembered(part, "said", said_in) for part in arm(*branch))


def arm(node: ast.AST, outcome: bool) -> list[ast.AST]:
    """What is executed on this outcome of a condition; of a loop, its body."""
    if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        return list(node.body)
    found = getattr(node, "body" if outcome else "orelse", None)
    if found is None:
        return [node]
    return list(found) if isinstance(found, list) else [found]


def said_in(part: ast.AST) -> frozenset[str]:
    """The names and attributes of a text, and whether it makes an optimizer, hands one over, or calls what clears by its name."""
    said: set[str] = set()
    for node in syntax_parts(part):
        if isinstance(node, ast.Attribute):
            said.add(node.attr)
        elif isinstance(node, ast.Name):
            said.add(node.id)
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
            key = key_of(node.func)
            if name not in BUILTINS and key.partition(".")[0] not in COMPUTING and not only_watches(key):
                said.add(CALLED)
            if name in OPTIMIZERS or suggests(OPTIMIZER, name) or "freez" in name.lower():
                said.add(MADE)
            if may_clear(name) and not only_steps(name, key_of(getattr(node.func, "value", None))):
                said.add(CLEARED)
            keys = [key_of(one) for one in [*node.args, *(keyword.value for keyword in node.keywords)]]
            if any(key and BY_NAME[OPTIMIZER].search(last_part(key)) for key in keys):
                said.add(GIVEN)
    return frozenset(said)


def only_steps(method: str, owner: str) -> bool:
    """`scheduler.step()`, `optimizer.step()`, `scaler.step(optimizer)`: none of them clears."""
    return is_scheduler_name(owner) or (
        method == "step" and any(suggests(role, last_part(owner)) for role in (OPTIMIZER, SCALER))
    )
