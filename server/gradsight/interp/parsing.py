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
    touched: set[int] = set()
    tree, problem = _parse(text)
    if tree is None and problem is not None:
        problems.append(problem)
        tree, touched = _repair(text, problem)
    if tree is None:
        return Parsed([], problems)
    units = split_units(path, text, tree)
    for unit in units:
        unit.repaired = any(unit.start <= line <= unit.end for line in touched)
    return Parsed(units, problems)


def reparse(path: str, text: str, old_text: str, old_units: list[Unit], was_broken: bool) -> Parsed:
    """Parse an edited text, keeping the units that the edit did not touch (as the same objects, moved)."""
    if was_broken:
        return keep_equal_units(parse_text(path, text), old_units)
    new_lines, old_lines = _lines(text), _lines(old_text)
    same = min(len(new_lines), len(old_lines))
    before = 0
    while before < same and new_lines[before] == old_lines[before]:
        before += 1
    after = 0
    while after < same - before and new_lines[-1 - after] == old_lines[-1 - after]:
        after += 1
    shift = len(new_lines) - len(old_lines)
    head = [unit for unit in old_units if unit.end <= before]
    tail = [unit for unit in old_units[len(head) :] if unit.start > len(old_lines) - after]
    start = head[-1].end + 1 if head else 1
    stop = tail[0].start + shift - 1 if tail else len(new_lines)
    middle = "\n".join(new_lines[start - 1 : stop])
    tree, problem = _parse(middle + "\n")
    if tree is None or problem is not None:
        return keep_equal_units(parse_text(path, text), old_units)
    fresh = split_units(path, middle, tree)
    for unit in fresh:
        unit.offset = start - 1
    for unit in tail:
        unit.offset += shift
    gone = old_units[len(head) : len(old_units) - len(tail)]
    return Parsed([*head, *_same_texts(fresh, gone), *tail], [])


def keep_equal_units(parsed: Parsed, old_units: list[Unit]) -> Parsed:
    """Replace fresh units by old ones with the same text."""
    return Parsed(_same_texts(parsed.units, old_units), parsed.problems)


def _same_texts(fresh: list[Unit], old_units: list[Unit]) -> list[Unit]:
    available: dict[str, list[Unit]] = {}
    for unit in reversed(old_units):
        if not unit.repaired:
            available.setdefault(unit.text, []).append(unit)
    result = []
    for unit in fresh:
        known = available.get(unit.text) if not unit.repaired else None
        if known:
            old = known.pop()
            old.offset = unit.start - old.first
            result.append(old)
        else:
            result.append(unit)
    return result


def _lines(text: str) -> list[str]:
    return (
        text.split("\n") if "\r" not in text else text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    )


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


def _repair(text: str, problem: SyntaxProblem) -> tuple[ast.Module | None, set[int]]:
    """Replace broken lines by `pass` until the rest parses; also tells which lines."""
    if "\0" in text or problem.message.startswith("the text is nested"):
        return None, set()
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    touched: set[int] = set()
    for _ in range(MOST_REPAIRS):
        line = min(problem.span.line, len(lines))
        while line in touched and line > 1:
            line -= 1
        if line in touched:
            return None, touched
        touched.add(line)
        _blank(lines, line - 1, problem.message)
        tree, following = _parse("\n".join(lines))
        if tree is not None:
            return tree, touched
        if following is None:
            return None, touched
        problem = following
    return None, touched


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
