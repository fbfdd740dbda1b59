"""The user's own code as a sentence may quote it: short, on one line, never torch's internal name for it."""

from __future__ import annotations

import ast

from gradsight.interp.syntax import SYMBOLS, short_text
from gradsight.model.sites import Site
from gradsight.model.tensors import Node, Write

LONGEST = 26


def code_at(site: Site) -> str:
    """What stands at a place."""
    return code_of(site.node)


def code_of(node: ast.AST) -> str:
    """A piece of code: `gate *= …`, `h[t] = …`, `x.add_(1)`."""
    if isinstance(node, ast.AugAssign):
        start = f"{target_text(node.target)} {SYMBOLS[type(node.op)]}= "
        return with_rest(start, short_text(node.value))
    if isinstance(node, ast.Assign):
        return with_rest(f"{target_text(node.targets[0])} = ", short_text(node.value))
    if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
        return f"{target_text(node)} = …"
    if isinstance(node, ast.Call):
        whole = short_text(node)
        if len(whole) <= LONGEST:
            return whole
        called = short_text(node.func)
        rest = whole[len(called) :] if whole.startswith(called) else ""
        dots = "(…)" if node.args or node.keywords else "()"
        ends = _ends(node.func)
        forms = [f"{end}{rest}" for end in ends if rest] + [f"{end}{dots}" for end in (called, *ends)]
        return next((form for form in forms if len(form) <= LONGEST), f"{clipped(called)}{dots}")
    return clipped(short_text(node)) if isinstance(node, ast.expr) else ""


def _ends(node: ast.expr) -> list[str]:
    """The ends of a chain of attributes, the longest first: `….weight.data.mul_`, `….data.mul_`, `….mul_`."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return [f"….{'.'.join(names[start:])}" for start in range(len(names))]


def operator_of(node: Node) -> str:
    """An operator as the user wrote it: `half * half` for a symbol, its name for a call."""
    written = node.site.node
    if isinstance(written, ast.BinOp):
        whole = short_text(written)
        return whole if len(whole) <= LONGEST else SYMBOLS[type(written.op)]
    return node.op


def target_text(node: ast.AST) -> str:
    """What is assigned to; a long index is left out."""
    text = short_text(node)
    if len(text) > LONGEST - 5 and isinstance(node, ast.Subscript):
        text = f"{short_text(node.value)}[…]"
    return clipped(text)


def quoted_write(write: Write) -> str:
    """A write as the user wrote it."""
    if write.mode in ("optimizer", "accumulate"):
        return "the optimizer's step" if write.mode == "optimizer" else "`backward()`"
    return f"`{code_at(write.site) or write.op}`"


def how_called(how: str) -> str:
    """The call that ran backward."""
    return how if how.endswith("grad") else f"{how}()"


def with_rest(start: str, rest: str) -> str:
    if len(start) + len(rest) <= LONGEST:
        return start + rest
    left, _, sign = start.rstrip().rpartition(" ")
    return f"{clipped(left)} {sign} …"


def clipped(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
