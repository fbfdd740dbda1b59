"""Edits that change nothing of what a program does: comments, blank lines, the first letters of a new line.

Whoever types has, most of the time, a line that does nothing yet.  A unit edited in such a way stays the same object: the
nodes that both trees have stay the old ones, at their new places, and so everything that is known about the unit, and about
what rests on it, is still known.

*Idle* is a statement inside a function that neither changes nor reads anything: `pass`, a constant or a name alone on its
line, and a constant given to a name that the function has nowhere else; or a name that it has nowhere else either, and that
the file does not bind: the first letters of another.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from gradsight.interp.syntax import remembered
from gradsight.interp.visible_text import LOOKING, may_change_inside
from gradsight.model.report import GapKind
from gradsight.model.sites import Unit
from gradsight.model.values import Value

Lines = dict[int, int]
Body = list[Any]
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")
LOOKING_AT_NAMES = frozenset({"locals", "vars", "dir", "eval", "exec", "globals"})


class Different(Exception):
    """The edit does something."""


class Grafted:
    """A unit that took over an edited text, and where its lines went."""

    __slots__ = ("begin", "changed", "delta", "heights", "is_silent", "lines", "stop", "unit")

    def __init__(
        self,
        unit: Unit,
        begin: int,
        stop: int,
        delta: int,
        lines: Lines,
        changed: frozenset[ast.AST],
        heights: list[tuple[int, int]],
        is_silent: bool,
    ) -> None:
        self.unit = unit
        self.begin = begin
        self.stop = stop
        self.delta = delta
        self.lines = lines
        self.changed = changed
        """Methods that do something else now, of which nobody else can tell."""
        self.heights = heights
        """The lines that each function around the edit had, and has now."""
        self.is_silent = is_silent
        """Whether no question about the text has another answer now, but for those about its length."""

    def moved(self, line: int) -> int:
        """Where a line with a node on it is now; lines count as the nodes of the unit count them."""
        if line < self.begin:
            return line
        return line + self.delta if line >= self.stop else self.lines.get(line, line)


def graft(old: Unit, new: Unit, bound: Callable[[], frozenset[str]]) -> Grafted | None:
    """Make the old unit the new one, if they do the same; None if they do not, and nothing has changed then.

    Methods may do something else as long as others see the same of them.  `bound`: the names that the file binds.
    """
    if len(old.tree) != 1 or len(new.tree) != 1 or not isinstance(old.tree[0], DEFINITIONS):
        return None
    try:
        plan = _Plan(old, new, bound)
        plan.compare_bodies(old.tree, new.tree, None, None)
    except Different:
        return None
    before = plan.heights()
    plan.carry_out()
    heights = list(zip(before, plan.heights()))
    old.text, old.height, old.lines = new.text, new.height, None
    old.repaired = new.repaired
    old.offset = new.start - old.first
    changed = frozenset(method for method, _ in plan.replaced)
    is_silent = not changed and plan.is_silent
    return Grafted(old, plan.begin, plan.stop, plan.delta, plan.lines, changed, heights, is_silent)


class _Plan:
    """What is to be done to the old tree, found out before anything is done."""

    def __init__(self, old: Unit, new: Unit, bound: Callable[[], frozenset[str]]) -> None:
        self.bound = bound
        self.replaced: list[tuple[ast.AST, ast.AST]] = []
        before, after = old.text.split("\n"), new.text.split("\n")
        same = common(before, after, min(len(before), len(after)))
        alike = common(before[::-1], after[::-1], min(len(before), len(after)) - same)
        self.begin = old.first + same
        """The first line, as the old nodes count, that the edit touched; `stop` is the first behind it."""
        self.stop = old.first + len(before) - alike
        self.new_stop = old.first + len(after) - alike
        self.delta = len(after) - len(before)
        self.shift = old.first - new.first
        """What to add to a line of the new tree to count as the old one does."""
        self.placed: list[tuple[ast.AST, ast.AST]] = []
        self.behind: list[ast.AST] = []
        self.bodies: list[tuple[Body, Body]] = []
        self.fresh: list[ast.AST] = []
        self.touched: list[ast.AST] = []
        self.lines: Lines = {}
        self.is_silent = True

    def heights(self) -> list[int]:
        """The lines of the functions that the edit is in."""
        return [
            int((node.end_lineno or node.lineno) - node.lineno)
            for node in self.touched
            if isinstance(node, FUNCTIONS)
        ]

    # -- comparing ---------------------------------------------------------------------------------------------------

    def compare_bodies(
        self, old: Body, new: Body, was: Counter[str] | None, now: Counter[str] | None
    ) -> None:
        """Two rows of statements; `was` and `now` count the names of the function that they are in."""
        rest = iter([statement for statement in old if not self.is_idle(statement, was)])
        merged: Body = []
        for statement in new:
            if self.is_idle(statement, now):
                self.fresh.append(statement)
                merged.append(statement)
                continue
            known = next(rest, None)
            if known is None:
                raise Different
            self.compare(known, statement, was, now)
            merged.append(known)
        if next(rest, None) is not None:
            raise Different
        self.is_silent = self.is_silent and self.looks_alike(old, merged, was, now)
        self.bodies.append((old, merged))

    def is_idle(self, statement: ast.AST, names: Counter[str] | None) -> bool:
        if names is None:
            return False
        if given := given_in_vain(statement, names):
            return given not in self.bound()
        return is_idle(statement, names)

    def looks_alike(self, old: Body, new: Body, was: Counter[str] | None, now: Counter[str] | None) -> bool:
        """Whether idle statements that came or went say nothing by a name or a text, and none of them ends the row.

        What raises and does nothing else is told from what does something by its length.
        """
        if self.telling(old, was) != self.telling(new, now):
            return False
        done = [one for one in new if not self.is_idle(one, now)]
        return old[-1:] == new[-1:] and not (len(done) == 1 and isinstance(done[0], ast.Raise))

    def telling(self, body: Body, names: Counter[str] | None) -> list[str]:
        """The idle statements that somebody could look at: texts, and names that stand elsewhere too."""
        return [
            ast.dump(one)
            for one in body
            if self.is_idle(one, names)
            and any(
                isinstance(part.value, str) if isinstance(part, ast.Constant) else self.is_known(part, names)
                for part in ast.walk(one)
                if isinstance(part, (ast.Constant, ast.Name))
            )
        ]

    def is_known(self, name: ast.Name, names: Counter[str] | None) -> bool:
        return names is None or names[name.id] > 1 or name.id in LOOKING or name.id in self.bound()

    def compare(self, old: ast.AST, new: ast.AST, was: Counter[str] | None, now: Counter[str] | None) -> None:
        """Two statements, or two parts of one that have statements in them."""
        if type(old) is not type(new):
            raise Different
        if (span := _lines_of(old)) is not None and (new_span := _lines_of(new)) is not None:
            first, last = new_span[0] + self.shift, new_span[1] + self.shift
            if span[1] < self.begin and (first, last) == span:
                return
            if (
                span[0] >= self.stop
                and first >= self.new_stop
                and (first - self.delta, last - self.delta) == span
            ):
                self.behind.append(old)
                return
        if isinstance(old, FUNCTIONS) and was is None:
            was, now = names_in(old), names_in(new)
        if isinstance(old, ast.ClassDef) and isinstance(new, ast.ClassDef) and was is None:
            self.compare_class(old, new)
            return
        self.touched.append(old)
        self.place(old, new)
        for name in old._fields:
            here, there = getattr(old, name, None), getattr(new, name, None)
            if name not in BLOCKS or not isinstance(here, list) or not isinstance(there, list):
                self.compare_values(here, there)
            elif name in ("handlers", "cases"):
                if len(here) != len(there):
                    raise Different
                for one, other in zip(here, there):
                    self.compare(one, other, was, now)
            else:
                self.compare_bodies(here, there, was, now)

    def compare_class(self, old: ast.ClassDef, new: ast.ClassDef) -> None:
        """Two classes: a method of them may have another body."""
        self.touched.append(old)
        self.place(old, new)
        for name in old._fields:
            if name != "body":
                self.compare_values(getattr(old, name, None), getattr(new, name, None))
        if len(old.body) != len(new.body):
            raise Different
        for one, other in zip(old.body, new.body):
            kept: list[list[Any]] = [self.placed, self.behind, self.bodies, self.fresh, self.touched]
            counts, lines = [len(some) for some in kept], dict(self.lines)
            try:
                self.compare(one, other, None, None)
            except Different:
                if not may_change_inside(one, other, old, self.bound()):
                    raise
                for some, count in zip(kept, counts):
                    del some[count:]
                self.lines = lines
                self.replace(one, other)

    def replace(self, old: ast.AST, new: ast.AST) -> None:
        """A method that is called in the same way, with another body."""
        if type(old) is not type(new):
            raise Different
        self.touched.append(old)
        self.place(old, new)
        for name in old._fields:
            if name != "body":
                self.compare_values(getattr(old, name, None), getattr(new, name, None))
        body: Body = new.body  # type: ignore[attr-defined]
        self.fresh += body
        self.bodies.append((old.body, body))  # type: ignore[attr-defined]
        self.replaced.append((old, new))

    def compare_values(self, old: Value, new: Value) -> None:
        """Two expressions, or whatever else a statement has besides its blocks."""
        if isinstance(old, ast.AST):
            if type(old) is not type(new):
                raise Different
            self.place(old, new)
            for name in old._fields:
                self.compare_values(getattr(old, name, None), getattr(new, name, None))
        elif isinstance(old, list):
            if not isinstance(new, list) or len(old) != len(new):
                raise Different
            for one, other in zip(old, new):
                self.compare_values(one, other)
        elif type(old) is not type(new) or repr(old) != repr(new):
            raise Different

    def place(self, old: ast.AST, new: ast.AST) -> None:
        self.placed.append((old, new))
        line = getattr(old, "lineno", None)
        if line is not None:
            there = new.lineno + self.shift  # type: ignore[attr-defined]
            if self.lines.setdefault(line, there) != there:
                raise Different

    # -- carrying out ------------------------------------------------------------------------------------------------

    def carry_out(self) -> None:
        """Give the old nodes their new places, and put what is new beside them."""
        for old, new in self.placed:
            for name in PLACE:
                value = getattr(new, name, None)
                if value is not None:
                    setattr(old, name, value + self.shift if name.endswith("lineno") else value)
        if self.delta:
            for node in self.behind:
                move(node, self.delta)
        if self.shift:
            for node in self.fresh:
                move(node, self.shift)
        for body, merged in self.bodies:
            body[:] = merged
        for node in self.touched:
            forget_answers(node)
            if isinstance(node, ast.ClassDef):
                # Whether a method is worth executing depends on the text of its whole class.
                for member in node.body:
                    forget_answers(member)


def is_idle(statement: ast.AST, names: Counter[str]) -> bool:
    """Whether a statement does nothing; `names` counts those of the function around it."""
    if isinstance(statement, ast.Pass):
        return True
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, (ast.Constant, ast.Name))
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return (
            isinstance(target, ast.Name)
            and isinstance(statement.value, ast.Constant)
            and names[target.id] == 1
            and not any(names[word] for word in LOOKING_AT_NAMES)
        )
    return False


def given_in_vain(statement: ast.AST, names: Counter[str]) -> str:
    """The name that is given to another, where the function of these names has neither of them elsewhere; else nothing."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    target, value = statement.targets[0], statement.value
    if (
        isinstance(target, ast.Name)
        and isinstance(value, ast.Name)
        and names[target.id] == names[value.id] == 1
        and value.id not in LOOKING
        and not any(names[word] for word in LOOKING_AT_NAMES)
    ):
        return value.id
    return ""


def is_given_in_vain(name: ast.AST, statement: ast.AST, function: ast.AST) -> bool:
    """Whether a name is what a statement gives to another that the function never reads: what it stands for is no loss."""
    if not isinstance(statement, ast.Assign) or statement.value is not name:
        return False
    return bool(given_in_vain(statement, remembered(function, "names in", names_in)))


def names_in(function: ast.AST) -> Counter[str]:
    """How often a function has each word that can be a name: read, bound, declared or given."""
    found: Counter[str] = Counter()
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            found[node.id] += 1
        elif not isinstance(node, (ast.Constant, ast.Attribute)):
            for name in ("name", "names", "arg", "asname", "rest", "kwarg", "vararg"):
                value = node.__dict__.get(name)
                for word in value if isinstance(value, list) else [value]:
                    if isinstance(word, str):
                        found[word] += 1
    return found


def move(node: ast.AST, lines: int) -> None:
    """Move a node and everything in it."""
    for inner in ast.walk(node):
        if "lineno" in inner.__dict__:
            inner.lineno += lines  # type: ignore[attr-defined]
            inner.end_lineno += lines  # type: ignore[attr-defined]


def forget_answers(node: ast.AST) -> None:
    """Drop what was worked out from the syntax of a node and kept with it."""
    known = {*node._fields, *node._attributes}
    for name in [name for name in node.__dict__ if name not in known]:
        del node.__dict__[name]


def _lines_of(node: ast.AST) -> tuple[int, int] | None:
    first = getattr(node, "lineno", None)
    last = getattr(node, "end_lineno", None)
    if first is None or last is None:
        return None
    for decorator in getattr(node, "decorator_list", ()):
        first = min(first, decorator.lineno)
    return first, last


def common(one: list[str], other: list[str], most: int) -> int:
    """How many lines two texts have in common at their beginning, up to a number."""
    return next((index for index in range(most) if one[index] != other[index]), most)


Gap = tuple[str, Unit, int, GapKind]
"""Why something is not known, the unit, the line, and the kind of reason."""


def remap(gaps: dict[Gap, int], grafts: list[Grafted]) -> dict[Gap, int]:
    """Gaps, which name lines of units, after units took over edited texts."""
    moved = {graft.unit: graft for graft in grafts}

    def entries() -> Iterator[tuple[Gap, int]]:
        for (reason, unit, line, kind), count in gaps.items():
            found = moved.get(unit)
            yield (reason, unit, found.moved(line) if found is not None else line, kind), count

    return dict(entries())
