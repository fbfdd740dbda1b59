"""The oracle: runs a program on every path and tells what torch does with it, and which lines are to blame."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from types import CodeType

from gradsight_dev.fuzz.oracle.blame import (
    earlier_passes,
    writers_behind_broken_views,
    writers_of_stale_saves,
)
from gradsight_dev.fuzz.oracle.execution import Ended, Raised, gradient_of, run, tensors_of, wants_gradient
from gradsight_dev.fuzz.oracle.reference import ClonedSaves, differs, running_statistics
from gradsight_dev.fuzz.oracle.shadow import follow
from gradsight_dev.fuzz.oracle.steering import Steering, TooManyPaths, every_path
from gradsight_dev.fuzz.oracle.truth import Failure, Truth, Verdict, family_of

CUTTING = re.compile(
    r"detach|\.data\b|no_grad|inference_mode|set_grad_enabled|torch\.tensor|as_tensor|numpy|item\(|float\(|tolist|arg(max|sort)|long\(|int\(| > |isnan"
)
UNSEEN_WRITES = re.compile(r"\.data\b|numpy|fused=True")
REFUSES_HOOKS = "don't yet support saved tensor hooks"
"""What torch.func says to the reference run; programs that write nothing unseen need no reference."""
MOST_EXPLAINED = 8
"""A program that fails on many paths is explained on the first few."""
WORST_FIRST: tuple[Verdict, ...] = ("silent", "masked", "cut", "exact")


@dataclass(frozen=True, slots=True)
class Seen:
    """What one path that ended has shown; `unseen` as in the truth."""

    verdict: Verdict
    note: str = ""
    unseen: frozenset[int] = frozenset()


def judge(text: str, path: str = "<program>") -> Truth:
    """What torch does with the program, on all its paths."""
    code = compile(text, path, "exec")
    failures: list[Failure] = []
    seen: list[Seen] = []
    paths = 0
    try:
        for steering in every_path(text, path):
            paths += 1
            outcome = run(code, steering)
            script = tuple(steering.answers)
            if isinstance(outcome, Raised):
                family = family_of(outcome.message)
                if family is None:
                    return Truth(
                        "foreign",
                        paths=paths,
                        note=f"{outcome.error}: {outcome.message.splitlines()[0][:120]}",
                    )
                if len(failures) < MOST_EXPLAINED:
                    failure = _explain(code, text, path, script, family.name, outcome)
                    if failure not in failures:
                        failures.append(failure)
            else:
                seen.append(_examine(code, text, path, script, outcome))
    except TooManyPaths:
        return Truth("foreign", paths=paths, note="more paths than are worth running")
    if failures:
        return Truth("raises", tuple(failures), paths)
    worst = min(seen, key=lambda one: WORST_FIRST.index(one.verdict))
    if worst.verdict == "silent":
        writers = frozenset[int]().union(*(one.unseen for one in seen if one.verdict == "silent"))
        failures.append(Failure("silent", "", f"{worst.note} is wrong", 0, writers))
    unseen = frozenset[int]().union(*(one.unseen for one in seen))
    return Truth(worst.verdict, tuple(failures), paths, worst.note, unseen)


def _examine(code: CodeType, text: str, path: str, script: tuple[bool, ...], plain: Ended) -> Seen:
    """Whether the gradients of a run that ended are right."""
    saves = ClonedSaves(path)
    cloned = run(code, Steering(text, path, script), saves)
    if isinstance(cloned, Raised):
        if REFUSES_HOOKS in cloned.message and not UNSEEN_WRITES.search(text):
            return Seen("exact")
        suspects = {number for number, line in enumerate(text.splitlines(), 1) if UNSEEN_WRITES.search(line)}
        note = f"the reference run raises {cloned.error}: {cloned.message.splitlines()[0][:80]}"
        return Seen("masked", note, frozenset(suspects))
    difference = differs(plain, cloned)
    written = saves.changed.keys() - running_statistics(cloned)
    if difference or written:
        unseen = writers_of_stale_saves(code, text, Steering(text, path, script), unseen=True)
        unseen = unseen.union(*(saves.changed[storage] for storage in written))
        if difference:
            return Seen("silent", difference, unseen)
        return Seen("masked", "a saved tensor was changed unseen", unseen)
    if CUTTING.search(text) and any(
        wants_gradient(tensor) and gradient_of(tensor) is None for _, tensor in tensors_of(plain.names)
    ):
        story = follow(code, text, Steering(text, path, script))
        starved = [leaf for leaf in story.leaves if leaf.grad is None]
        if starved:
            return Seen("cut", f"cut at lines {sorted(story.cut_lines | story.escapes)}")
    return Seen("exact")


def _explain(
    code: CodeType, text: str, path: str, script: tuple[bool, ...], family: str, raised: Raised
) -> Failure:
    """The failure with the lines that cause it."""
    steering = Steering(text, path, script)
    causes: frozenset[int] = frozenset({raised.line})
    carried: frozenset[int] = frozenset()
    if family == "version":
        causes = writers_of_stale_saves(code, text, steering)
        _, carried = earlier_passes(code, text, Steering(text, path, script))
        carried |= {raised.line}
    elif family == "freed":
        earlier, carried = earlier_passes(code, text, steering)
        causes |= earlier
    elif family == "views" and "its base or another view" in raised.message:
        causes |= writers_behind_broken_views(code, steering)
    elif family in ("no_graph", "unused", "inference"):
        story = follow(code, text, steering)
        causes |= story.cut_lines | story.escapes
        if family == "inference":
            causes |= story.inference_lines
    elif family == "not_a_leaf":
        causes |= _last_bindings(text, raised.line)
    elif family == "none_grad":
        causes |= {number for number, line in enumerate(text.splitlines(), 1) if ".grad" in line}
    return Failure(family, raised.error, raised.message.splitlines()[0], raised.line, causes, carried)


def _last_bindings(text: str, line: int) -> set[int]:
    """The lines that last bound the names which the statement on this line reads: where a leaf stopped being one."""
    tree = ast.parse(text)
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno == line]
    names = {
        node.id for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Name)
    }
    bound: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node.lineno < line:
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id in names:
                    bound[target.id] = max(node.lineno, bound.get(target.id, 0))
    return set(bound.values())
