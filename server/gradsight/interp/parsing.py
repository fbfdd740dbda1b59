"""From text to units: one per top-level statement, and the parts that parse when the whole does not."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

from gradsight.interp.sites import Unit
from gradsight.model.report import SyntaxProblem
from gradsight.model.source import Span

MOST_REPAIRS = 12
_OPENER = re.compile(r"^\s*(if|for|while|with|try|else|elif|except|finally|def|class|async|match|case)\b.*$")


@dataclass(frozen=True, slots=True)
class Parsed:
    """The units of a text in order, and what did not parse."""

    units: list[Unit]
    problems: list[SyntaxProblem]


def parse_text(path: str, text: str) -> Parsed:
    """Parse a whole text; where that fails, everything around the broken lines."""
    problems: list[SyntaxProblem] = []
    tree, problem = _parse(text)
    if tree is None and problem is not None:
        problems.append(problem)
        tree = _repair(text, problem)
    if tree is None:
        return Parsed([], problems)
    return Parsed(split_units(path, text, tree), problems)


def split_units(path: str, text: str, tree: ast.Module) -> list[Unit]:
    """One unit per top-level statement."""
    lines = (
        text.split("\n") if "\r" not in text else text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    )
    units = []
    for statement in tree.body:
        first = statement.lineno
        for decorator in getattr(statement, "decorator_list", []):
            first = min(first, decorator.lineno)
        last = statement.end_lineno or first
        units.append(Unit(path, "\n".join(lines[first - 1 : last]), [statement], first))
    return units


def _parse(text: str) -> tuple[ast.Module | None, SyntaxProblem | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text), None
        except SyntaxError as error:
            line = min(max(1, error.lineno or 1), text.count("\n") + 1)
            column = max(0, (error.offset or 1) - 1)
            end_line = max(line, min(error.end_lineno or line, text.count("\n") + 1))
            end_column = max(column, (error.end_offset or 1) - 1) if end_line == line else 0
            return None, SyntaxProblem(
                error.msg or "invalid syntax", Span(line, column, end_line, max(end_column, 0))
            )
        except (ValueError, RecursionError, MemoryError) as error:
            reason = (
                "the text is nested too deeply"
                if isinstance(error, (RecursionError, MemoryError))
                else str(error)
            )
            return None, SyntaxProblem(reason, Span(1, 0, 1, 0))


def _repair(text: str, problem: SyntaxProblem) -> ast.Module | None:
    """Replace broken lines by `pass` until the rest parses."""
    if "\0" in text or problem.message.startswith("the text is nested"):
        return None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    touched: set[int] = set()
    for _ in range(MOST_REPAIRS):
        line = min(problem.span.line, len(lines))
        while line in touched and line > 1:
            line -= 1
        if line in touched:
            return None
        touched.add(line)
        _blank(lines, line - 1, problem.message)
        tree, following = _parse("\n".join(lines))
        if tree is not None:
            return tree
        if following is None:
            return None
        problem = following
    return None


def _blank(lines: list[str], index: int, message: str) -> None:
    """Make one line harmless; a line that opens a block keeps its block under `if True:`."""
    content = lines[index]
    indent = content[: len(content) - len(content.lstrip())]
    following = next((line for line in lines[index + 1 :] if line.strip()), "")
    deeper = len(following) - len(following.lstrip()) > len(indent)
    if "expected an indented block" in message:
        lines[index] = indent + "pass" if not content.strip() else content
        previous = index - 1
        while previous >= 0 and not lines[previous].strip():
            previous -= 1
        if previous >= 0 and _OPENER.match(lines[previous]):
            opener = lines[previous]
            lines[previous] = opener[: len(opener) - len(opener.lstrip())] + "pass"
        return
    if "unindent" in message or "unexpected indent" in message:
        lines[index] = ""
        return
    lines[index] = indent + ("if True:" if deeper and content.strip() else "pass")
