"""The pieces of code that evidence rests on: a function, or a module outside its functions; and where they are now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CodeUnit:
    """A piece of code that evidence rests on, and the lines it had; `is_module` for the code outside functions."""

    text: str
    lines: tuple[int, ...]
    is_module: bool = False


def units_of(text: str, lines: Iterable[int]) -> tuple[CodeUnit, ...]:
    """The pieces of code that these lines lie in; none if the text does not parse."""
    functions = _functions(text)
    if functions is None:
        return ()
    rows = text.split("\n")
    found: dict[int, CodeUnit] = {}
    for line in lines:
        # The outermost one: what a function does may rest on what is around it.
        start, end = min((each for each in functions if each[0] <= line <= each[1]), default=(0, 0))
        if start:
            found[start] = CodeUnit("\n".join(rows[start - 1 : end]), tuple(range(start, end + 1)))
        else:
            found[0] = _outside(functions, rows)
    return tuple(found.values())


def lines_now(unit: CodeUnit, text: str) -> tuple[int, ...] | None:
    """The lines of a unit in the present text; None once its code has changed."""
    return _outside_now(unit, text) if unit.is_module else _function_now(unit, text)


def _function_now(unit: CodeUnit, text: str) -> tuple[int, ...] | None:
    """The lines of a function now, the nearest to where it was if there are twins; None if its text is gone."""
    starts = []
    at = text.find(unit.text)
    while at >= 0:
        end = at + len(unit.text)
        if (at == 0 or text[at - 1] == "\n") and text[end : end + 1] in ("", "\n"):
            starts.append(text.count("\n", 0, at) + 1)
        at = text.find(unit.text, at + 1)
    start = min(starts, key=lambda line: abs(line - unit.lines[0]), default=None)
    return None if start is None else tuple(range(start, start + len(unit.lines)))


def _outside_now(unit: CodeUnit, text: str) -> tuple[int, ...] | None:
    """The lines outside functions now; None if they changed.  A text that does not parse changes nothing yet."""
    functions = _functions(text)
    if functions is None:
        return unit.lines
    now = _outside(functions, text.split("\n"))
    return now.lines if now.text == unit.text else None


def _outside(functions: Sequence[tuple[int, int]], rows: Sequence[str]) -> CodeUnit:
    """A module without its functions, blank lines and comments."""
    inside = {row for start, end in functions for row in range(start, end + 1)}
    kept = [
        (number, row.rstrip())
        for number, row in enumerate(rows, 1)
        if number not in inside and row.strip() and not row.lstrip().startswith("#")
    ]
    return CodeUnit("\n".join(row for _, row in kept), tuple(number for number, _ in kept), True)


def _functions(text: str) -> list[tuple[int, int]] | None:
    """First and last line of every function; None if the text does not parse."""
    import ast

    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return [
        (min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
