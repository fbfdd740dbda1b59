"""What a fix is called in a menu: by its result where that is one line, otherwise by what it does; unsafe ones say what they change."""

from __future__ import annotations

import ast

from gradsight.model.fix import Safety

LONGEST_LINE = 60
CHANGES: dict[str, str] = {
    "backward": "trains with one more backward",
    "backward-first": "the step then uses these gradients",
    "buffer": "it will not train",
    "call-module": "runs the hooks too",
    "clear": "changes what later steps apply",
    "clear-after": "changes what later steps apply",
    "clear-last": "steps become larger",
    "clear-later": "clears later",
    "clone-alias": "values read later change",
    "clone-returned": "values read later change",
    "clone-stored": "values read later change",
    "closure": "the step then runs the closure",
    "copy-value": "no gradient flows through the copy",
    "deepcopy": "values read later change",
    "detach-read": "no gradient flows through it",
    "detach-state": "gradients end here",
    "detach-target": "the target no longer trains",
    "drop-grad": "the optimizer no longer moves it",
    "free-graph": "gradients end earlier",
    "hoist": "the layer trains from then on",
    "in-place": "overwrites the tensor",
    "list": "code that got nothing then runs",
    "mark-dirty": "raises for leaves",
    "new-leaf": "gradients end here",
    "no-activation": "changes the model's output",
    "no-decorator": "records a graph here",
    "no-detach": "gradients flow further back",
    "no-grad": "no gradient flows through the update",
    "out-of-no-grad": "records the write in the graph",
    "own-leaf": "gradients end here",
    "pass-by": "changes the loss",
    "read-later": "changes the order",
    "reduce-mean": "one way to reduce the loss",
    "reduce-sum": "one way to reduce the loss",
    "retain-graph": "uses more memory",
    "return-it": "changes the gradient",
    "rsample": "not every distribution has it",
    "schedule-later": "changes the learning rates",
    "stack": "gradients flow further back",
    "step-later": "changes the order",
    "move-step": "changes the order",
    "store-detached": "gradients end here",
    "straight-through": "the gradient is an estimate",
    "train-mode": "dropout and batch norm train again",
    "unwrap": "records a graph here",
}
OTHERWISE = "may change results"


def title_of(before: str, after: str, said: str, kind: str, safety: Safety) -> str:
    """The title of a fix that makes one text of another."""
    title = by_result(before, after) or said
    return title if safety == "safe" else f"{title} ({CHANGES.get(kind, OTHERWISE)})"


def by_result(before: str, after: str) -> str:
    """What the text reads afterwards, where the fix changes, adds or removes one line; otherwise nothing."""
    old, new = before.split("\n"), after.split("\n")
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
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
