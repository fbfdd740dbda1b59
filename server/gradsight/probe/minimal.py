"""Cuts a minimal program out of a file: only the statements without which one finding would not be made.

The engine is the judge, so nothing is run: a statement may go as long as the finding stays where it is, with the calls
that lead to it.  What goes leaves empty lines behind, so that every line keeps its number.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from gradsight.model.finding import Finding
from gradsight.model.report import Report
from gradsight.model.source import Source
from gradsight.probe.scopes import Scopes

Check = Callable[[Source], Report]
Extent = Literal["lines", "fuller", "called"]
MOST_SECONDS = 4.0
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_CALLED_BY_TORCH = ("forward", "backward", "setup_context")
_COLLECTING = ("append", "extend", "add", "update", "insert", "setdefault", "appendleft")
_BLOCKS = ("body", "orelse", "finalbody", "handlers")


@dataclass(frozen=True, slots=True)
class Minimal:
    """The lines of a file with everything left out that a finding does not need.

    `entry` is the function that has to be called to come there; None when the program itself leads there.
    `fuller` are the lines with only unrelated definitions left out, for when something went that torch asks for.
    `called` are the lines with the file's own uses of the entry and what becomes of them, empty when it has none.
    """

    path: str
    lines: tuple[str, ...]
    entry: EntryPoint | None = None
    fuller: tuple[str, ...] = ()
    called: tuple[str, ...] = ()

    def text(self, call: str = "", extent: Extent = "lines") -> str:
        """The program to run: line numbers are those of the file, and the call comes after the last one."""
        return "\n".join(self._lines(extent)) + (f"\n\n{call}" if call else "\n")

    def snippet(self, call: str = "", extent: Extent = "lines") -> str:
        """The program to show: without the empty lines."""
        kept: list[str] = []
        for line in self._lines(extent):
            if not line.strip():
                continue
            starts_block = re.match(r"\s*(?:async\s+def|def|class|@|if __name__)\b", line) is not None
            is_top = line[:1] not in " \t)]}"
            after_block = bool(kept) and kept[-1][:1] in " \t" and is_top
            opens = bool(kept) and (kept[-1].endswith(":") or kept[-1].lstrip().startswith("@"))
            if kept and (starts_block or after_block) and not opens:
                kept += ["", ""] if is_top else [""]
            kept.append(line.rstrip())
        return "\n".join(kept) + "\n" + (f"\n\n{call}" if call else "")

    def _lines(self, extent: Extent) -> tuple[str, ...]:
        return {"lines": self.lines, "fuller": self.fuller, "called": self.called}[extent]


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A function, or a method of a class, at the top of a module."""

    function: ast.FunctionDef | ast.AsyncFunctionDef
    owner: ast.ClassDef | None = None


def cut_out(
    source: Source, finding: Finding, check: Check, most_seconds: float = MOST_SECONDS
) -> Minimal | None:
    """The minimal program around a finding of a file; None when the file does not parse."""
    try:
        tree = ast.parse(source.text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    entry = _entry(tree, finding)
    cutter = _Cutter(source, tree, finding, check, time.monotonic() + most_seconds)
    called = tuple(cutter.lines(cutter.strangers(entry)))
    cutter.keep_relatives()
    fuller = tuple(cutter.lines())
    cutter.drop_one_by_one(tree.body)
    return Minimal(source.path, tuple(cutter.lines()), entry, fuller, called)


class _Cutter:
    """The statements that are gone so far, and the judge."""

    def __init__(
        self, source: Source, tree: ast.Module, finding: Finding, check: Check, deadline: float
    ) -> None:
        self.source = source
        self.tree = tree
        self.finding = finding
        self.check = check
        self.deadline = deadline
        self.rows = source.text.split("\n")
        self.gone: list[ast.stmt] = []
        self.trail = _lines_of(finding)
        self.scopes = Scopes(tree)

    def keep_relatives(self) -> None:
        """Try to do at once without every top statement that neither the trail nor what it names needs."""
        kept = [each for each in self.tree.body if self._is_on_trail(each)]
        wanted = _names_in(kept)
        grew = True
        while grew:
            relatives = [each for each in self.tree.body if each not in kept and wanted & _bound_by(each)]
            grew = bool(relatives)
            kept += relatives
            wanted |= _names_in(relatives)
        self._try([each for each in self.tree.body if each not in kept])

    def strangers(self, entry: EntryPoint | None) -> list[ast.stmt]:
        """The top statements that have nothing to do with the uses of an entry and what becomes of them.

        Where there is no entry, what stands on the trail is the use; where there is no use, everything is strange.
        A main block is no use: it runs the program that is not to be run.
        """
        name = (entry.owner or entry.function).name if entry is not None else ""
        plain = [
            each
            for each in self.tree.body
            if not isinstance(each, (*_FUNCTIONS, ast.ClassDef)) and not _is_main(each)
        ]
        uses = [each for each in plain if self._is_on_trail(each) or name in _names_in([each])]
        if not uses:
            return list(self.tree.body)
        kept = [each for each in self.tree.body if self._is_on_trail(each) or each in uses]
        grew = True
        while grew:
            wanted, made = _names_in(kept), {bound for each in uses for bound in _changed_by(each)}
            later = [each for each in plain if each not in kept and _names_in([each]) & made]
            needed = [
                each for each in self.tree.body if each not in [*kept, *later] and _changed_by(each) & wanted
            ]
            uses += later
            kept += [*later, *needed]
            grew = bool(later or needed)
        return [each for each in self.tree.body if each not in kept and self._has_its_own_lines(each)]

    def drop_one_by_one(self, body: Sequence[ast.stmt]) -> None:
        """Try to do without each statement, the last ones first, and without parts of those that stay."""
        for statement in reversed(body):
            if time.monotonic() > self.deadline:
                return
            if statement in self.gone or (not self._is_on_trail(statement) and self._try([statement])):
                continue
            for block in _blocks_of(statement):
                self.drop_one_by_one(block)

    def lines(self, gone: Iterable[ast.stmt] = ()) -> list[str]:
        """The lines that are left; a block that lost everything passes."""
        all_gone = [*self.gone, *gone]
        rows = list(self.rows)
        for statement in all_gone:
            first, last = _extent(statement)
            rows[first - 1 : last] = [""] * (last - first + 1)
        left_out = set(map(id, all_gone))
        for block in _all_blocks(self.tree):
            if block and all(id(each) in left_out for each in block):
                first, _ = _extent(block[0])
                rows[first - 1] = " " * block[0].col_offset + "pass"
        return rows

    def _try(self, statements: list[ast.stmt]) -> bool:
        """Do without some statements if the finding stays; says whether they are gone."""
        removable = [each for each in statements if self._has_its_own_lines(each)]
        if not removable or not self._is_dispensable(removable):
            return False
        report = self.check(Source(self.source.path, "\n".join(self.lines(removable))))
        if report.syntax_problems or not any(self._is_same(each) for each in report.findings):
            return False
        self.gone += removable
        return True

    def _is_dispensable(self, statements: list[ast.stmt]) -> bool:
        """Whether what is left can still run: it names nothing that only these statements define.

        The engine goes on where a name is unknown; Python does not.
        """
        if any(_is_foundation(each) for each in statements):
            return False
        before = self.scopes.meanings({id(each) for each in self.gone})
        after = self.scopes.meanings({id(each) for each in [*self.gone, *statements]})
        return not after.lost_from(before)

    def _is_same(self, found: Finding) -> bool:
        return (
            found.code == self.finding.code
            and found.span.line == self.finding.span.line
            and found.path == self.finding.path
            and found.assumption == self.finding.assumption
            and _lines_of(found) >= self.trail
        )

    def _is_on_trail(self, statement: ast.stmt) -> bool:
        first, last = _extent(statement)
        return any(first <= line <= last for line in self.trail)

    def _has_its_own_lines(self, statement: ast.stmt) -> bool:
        first, last = _extent(statement)
        before = self.rows[first - 1][: statement.col_offset] if first == statement.lineno else ""
        after = self.rows[last - 1].encode()[statement.end_col_offset or 0 :].decode(errors="replace").strip()
        return not before.strip() and (not after or after.startswith("#"))


def _entry(tree: ast.Module, finding: Finding) -> EntryPoint | None:
    """The function through which a finding is entered: the one around the outermost place of its trail.

    Where no call leads there, it is the one that needs what the finding speaks of.
    """
    own = [step for step in finding.related if step.path == finding.path]
    outer = [step for step in own if step.role == "call"] or [step for step in own if step.role == "needed"]
    line = outer[-1].span.line if outer else finding.span.line
    for statement in tree.body:
        if not _extent(statement)[0] <= line <= _extent(statement)[1]:
            continue
        if isinstance(statement, _FUNCTIONS):
            return EntryPoint(statement)
        if isinstance(statement, ast.ClassDef):
            for part in statement.body:
                if isinstance(part, _FUNCTIONS) and _extent(part)[0] <= line <= _extent(part)[1]:
                    return EntryPoint(part, statement)
    return None


def _lines_of(finding: Finding) -> set[int]:
    steps = {step.span.line for step in finding.related if step.path == finding.path}
    return {finding.span.line, *steps}


def _extent(statement: ast.stmt) -> tuple[int, int]:
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(each.lineno for each in decorators)])
    return first, statement.end_lineno or statement.lineno


def _blocks_of(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in _BLOCKS:
        block = getattr(statement, name, None)
        if name == "handlers":
            for handler in block or ():
                yield handler.body
        elif isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block


def _all_blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.ExceptHandler)):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    yield block


def _is_foundation(statement: ast.stmt) -> bool:
    """What others rest on without naming it: `super().__init__()`, special methods, fields, results, what is collected, whose a name is."""
    if isinstance(statement, _FUNCTIONS):
        return statement.name.startswith("__") or statement.name in _CALLED_BY_TORCH
    if isinstance(statement, ast.Return):
        return statement.value is not None
    if isinstance(statement, (ast.Nonlocal, ast.Global)):
        return True
    if isinstance(statement, ast.AnnAssign):
        return statement.value is None
    if isinstance(statement, ast.Assign):
        return any(isinstance(target, ast.Subscript) for target in statement.targets)
    called = (
        statement.value.func
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        else None
    )
    return isinstance(called, ast.Attribute) and called.attr in ("__init__", *_COLLECTING)


def _is_main(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in _names_in([statement.test])


def _names_in(statements: Iterable[ast.AST]) -> set[str]:
    return {
        node.id
        for statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


def _bound_by(statement: ast.stmt) -> set[str]:
    """The names that a top statement gives a meaning to."""
    if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(each.asname or each.name).split(".")[0] for each in statement.names}
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }


def _changed_by(statement: ast.stmt) -> set[str]:
    """The names that a statement binds, and those whose value it may change: receivers of calls, targets of writes."""
    changed = _bound_by(statement)
    for node in ast.walk(statement) if not isinstance(statement, (*_FUNCTIONS, ast.ClassDef)) else ():
        place = node.value if isinstance(node, ast.Expr) else None
        if isinstance(place, ast.Call) and isinstance(place.func, ast.Attribute):
            changed |= _names_in([_root(place.func.value)])
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            changed |= _names_in([_root(node.value)])
    return changed


def _root(place: ast.expr) -> ast.expr:
    """`a` of `a.b[0].c`."""
    while isinstance(place, (ast.Attribute, ast.Subscript)):
        place = place.value
    return place
