"""What a fix is called in a menu: by its result where that is one line, otherwise by what it does; unsafe ones say what they change."""

from __future__ import annotations

import ast

from gradsight.fixes.difference import alike
from gradsight.model.fix import Safety

LONGEST_LINE = 60
CHANGES: dict[str, str] = {
    "add-losses": "one backward for all losses",
    "assign-together": "values read later change",
    "backward": "trains with one more backward",
    "backward-first": "the step then uses these gradients",
    "buffer": "it will not train",
    "call-it": "the method then runs",
    "call-module": "runs the hooks too",
    "clear": "changes what later steps apply",
    "clear-after": "changes what later steps apply",
    "clear-first": "changes the order",
    "clear-last": "steps become larger",
    "clear-later": "clears later",
    "clone-alias": "values read later change",
    "clone-first": "the original keeps its value",
    "clone-made": "the original keeps its value",
    "clone-operand": "the original keeps its value",
    "clone-result": "the original keeps its value",
    "clone-returned": "values read later change",
    "clone-stored": "values read later change",
    "closure": "the step then runs the closure",
    "copy": "no gradient flows through the copy",
    "copy-grad": "the copy keeps the old gradient",
    "copy-value": "no gradient flows through the copy",
    "create-graph": "uses more memory",
    "deepcopy": "values read later change",
    "detach-kept": "stored without its graph",
    "detach-read": "no gradient flows through it",
    "detach-state": "gradients end here",
    "detach-target": "the target no longer trains",
    "drop-grad": "the optimizer no longer moves it",
    "drop-grads": "clears the old gradient",
    "free-graph": "gradients end earlier",
    "groups": "changes the optimizer's options",
    "guard-none": "skipped where there is no gradient",
    "hoist": "the layer trains from then on",
    "in-place": "overwrites the tensor",
    "into-loop": "uses the current values in each step",
    "item-kept": "stored as a number",
    "keep-result": "later lines use the result",
    "layer": "the input keeps its value",
    "leaf-last": "the finished tensor becomes the leaf",
    "list": "code that got nothing then runs",
    "mark-dirty": "raises for leaves",
    "method": "changes what requires grad",
    "move-step": "changes the order",
    "new-leaf": "gradients end here",
    "new-tensor": "the original keeps its value",
    "no-activation": "changes the model's output",
    "no-decorator": "records a graph here",
    "no-detach": "gradients flow further back",
    "no-grad": "no gradient flows through the update",
    "no-grad-block": "grad mode comes back after the block",
    "no-grad-mode": "uses more memory",
    "no-number": "gradients flow further back",
    "no-parameter": "it is no longer a parameter",
    "none-gradient": "these inputs get no gradient",
    "optimizer-later": "the optimizer trains the new parameters",
    "out-of-no-grad": "records the write in the graph",
    "out-of-place": "the original keeps its value",
    "own-leaf": "gradients end here",
    "parameter": "it will train",
    "pass-by": "changes the loss",
    "read-later": "changes the order",
    "reduce-mean": "one way to reduce the loss",
    "reduce-sum": "one way to reduce the loss",
    "reentrant": "the checkpoint is no longer reentrant",
    "register": "its parameters are registered",
    "rename": "changes what requires grad",
    "require-grad": "the tensor then requires grad",
    "retain-grad": "keeps this gradient in memory",
    "retain-graph": "uses more memory",
    "return-it": "changes the gradient",
    "return-new": "the original keeps its value",
    "rewrite": "the original keeps its value",
    "rsample": "not every distribution has it",
    "save": "raises if it is overwritten",
    "save.clone()": "saves a copy",
    "schedule-later": "changes the learning rates",
    "skip-none": "skipped where there is no gradient",
    "stack": "gradients flow further back",
    "step-later": "changes the order",
    "store-detached": "gradients end here",
    "straight-through": "the gradient is an estimate",
    "super-init": "the module is set up first",
    "train-mode": "dropout and batch norm train again",
    "twin-passed": "the original keeps its value",
    "uncopied": "gradients flow further back",
    "unscale": "gradients are unscaled earlier",
    "unwrap": "records a graph here",
    "wait": "waits for the thread",
}
"""What a fix of each kind changes, where it is unsafe."""


def title_of(before: str, after: str, said: str, kind: str, safety: Safety) -> str:
    """The title of a fix that makes one text of another."""
    title = by_result(before, after) or said
    return title if safety == "safe" else f"{title} ({CHANGES[kind]})"


def by_result(before: str, after: str) -> str:
    """What the text reads afterwards, where the fix changes, adds or removes one line; otherwise nothing."""
    old, new = before.split("\n"), after.split("\n")
    start, end = alike(old, new)
    gone, come = old[start : len(old) - end], new[start : len(new) - end]
    if len(gone) > 1 or len(come) > 1:
        return ""
    line = " ".join((come or gone or [""])[0].partition("  #")[0].split())
    if ";" in line and gone and come:
        line = changed_statement(gone[0].strip(), come[0].strip())
    if not line or len(line) > LONGEST_LINE or "`" in line or ";" in line or not is_whole(line):
        return ""
    return f"{'replace with' if gone and come else 'add' if come else 'remove'} `{line}`"


def changed_statement(before: str, after: str) -> str:
    """Of several statements on a line the one that is another afterwards; nothing where that cannot be told."""
    try:
        old, new = ast.parse(before).body, ast.parse(after).body
    except SyntaxError:
        return ""
    changed = [then for now, then in zip(old, new, strict=False) if ast.dump(now) != ast.dump(then)]
    alone = changed[0] if len(old) == len(new) and len(changed) == 1 else None
    return (ast.get_source_segment(after, alone) or "") if alone is not None else ""


def is_whole(line: str) -> bool:
    """Whether a line is not a piece of a longer statement."""
    return all(
        line.count(left) == line.count(right) for left, right in ("()", "[]", "{}")
    ) and not line.endswith(("\\", ","))
