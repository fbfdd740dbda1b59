"""Functions that a file calls only where no gradient is recorded: behind `if not torch.is_grad_enabled():`.

A question to the syntax trees.  *Guard*: a condition that asks for the grad mode or for `requires_grad`, itself or by a
function of the same file.  Its *quiet* arm is the one that is taken when the answer is no.

    if x.device.type == "cpu" and not torch.is_grad_enabled():
        return fast_path(x)
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from gradsight.interp.syntax_parts import parts_of, syntax_parts

ASKING = frozenset({"is_grad_enabled", "requires_grad", "is_inference_mode_enabled"})
Named = Mapping[str, list[ast.AST]]


def called_without_grad(by_name: Named) -> set[str]:
    """The names that are called in quiet arms of guards, and nowhere else."""
    quiet: set[ast.AST] = set()
    calls: dict[str, list[ast.Call]] = {}
    for function in functions_of(by_name):
        for part in parts_of(function, ast.If):
            quiet |= {inner for arm in quiet_arms(part, by_name) for inner in syntax_parts(arm)}
    for function in functions_of(by_name) if quiet else ():
        for call in parts_of(function, ast.Call):
            if (name := name_of(call.func)) in by_name:
                calls.setdefault(name, []).append(call)
    return {name for name, places in calls.items() if all(call in quiet for call in places)}


def functions_of(by_name: Named) -> Iterable[ast.AST]:
    return (function for named in by_name.values() for function in named)


def quiet_arms(condition: ast.If, by_name: Named) -> Iterator[ast.stmt]:
    """The statements of a condition that run only if nothing is recorded."""
    answer = asks(condition.test, by_name)
    if answer is not None:
        yield from condition.body if answer == "denied" else condition.orelse


def asks(test: ast.expr, by_name: Named) -> str | None:
    """Whether a condition asks for recording (`asked`), holds only without it (`denied`), or is about something else."""
    if isinstance(test, ast.BoolOp):
        answers = {asks(value, by_name) for value in test.values}
        # `a and not recording` holds only without recording; `a or not recording` does not.
        wanted = "denied" if isinstance(test.op, ast.And) else "asked"
        return wanted if wanted in answers else None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = test.operand
        if isinstance(inner, ast.BoolOp) and isinstance(inner.op, ast.And):
            # `not (recording and x.requires_grad)`: nothing is recorded if any of them says no.
            return "denied" if all(asks(value, by_name) == "asked" for value in inner.values) else None
        return {"asked": "denied", "denied": "asked"}.get(asks(inner, by_name) or "")
    if isinstance(test, ast.Attribute):
        return "asked" if test.attr in ASKING else None
    if isinstance(test, ast.Call):
        name = name_of(test.func)
        if name in ASKING:
            return "asked"
        return told_by(by_name[name]) if name in by_name else None
    return None


def told_by(functions: list[ast.AST]) -> str | None:
    """What a function that only returns one condition asks."""
    if len(functions) != 1 or not isinstance(functions[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    last = functions[0].body[-1]
    return asks(last.value, {}) if isinstance(last, ast.Return) and last.value is not None else None


def name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""
