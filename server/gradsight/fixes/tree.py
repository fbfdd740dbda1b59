"""A text and its syntax tree, with every node's place as an offset into the text.

`ast` counts columns in UTF-8 bytes: this is where the fixes convert them.  A *patch* replaces text[start:end].
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from gradsight.model.fix import Edit, line_starts
from gradsight.model.source import Span

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
FORS = (ast.For, ast.AsyncFor)
WITHS = (ast.With, ast.AsyncWith)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True, slots=True, order=True)
class Patch:
    """Put `text` in the place of the characters from `start` up to `end`."""

    start: int
    end: int
    text: str


class Parents:
    """The node around each node, worked out for one top-level statement when it is first asked about."""

    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self.known: dict[ast.AST, ast.AST] = dict.fromkeys(module.body, module)
        self.indexed: set[ast.AST] = set()

    def get(self, node: ast.AST | None) -> ast.AST | None:
        if node is None or node is self.module:
            return None
        if node not in self.known:
            line = getattr(node, "lineno", None)
            for statement in self.module.body:
                if line is None or first_line(statement) <= line <= (statement.end_lineno or line):
                    self._index(statement)
        if node not in self.known:
            for statement in self.module.body:
                self._index(statement)
        return self.known.get(node)

    def __getitem__(self, node: ast.AST) -> ast.AST:
        found = self.get(node)
        if found is None:
            raise KeyError(node)
        return found

    def _index(self, statement: ast.stmt) -> None:
        if statement in self.indexed:
            return
        self.indexed.add(statement)
        waiting: list[ast.AST] = [statement]
        while waiting:
            node = waiting.pop()
            for child in ast.iter_child_nodes(node):
                self.known[child] = node
                waiting.append(child)


def first_line(node: ast.AST) -> int:
    """The line a statement or an expression begins on, decorators included."""
    line: int = min(one.lineno for one in [node, *getattr(node, "decorator_list", ())[:1]])
    return line


def heads(node: ast.AST) -> list[ast.expr]:
    """What a block is run under: the managers of `with`, the last one first, or the decorators of a definition."""
    if isinstance(node, WITHS):
        return [item.context_expr for item in reversed(node.items)]
    return node.decorator_list if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else []


class Tree:
    """One parsed text.  `parse` gives None for a text that does not parse: nothing can be repaired in it."""

    def __init__(self, text: str, module: ast.Module) -> None:
        self.text = text
        self.module = module
        self.starts = line_starts(text)
        self.is_ascii = text.isascii()
        self.parents = Parents(module)
        self.notes: dict[str, object] = {}
        """What others have found out about the whole text and want to find out once."""

    @classmethod
    def parse(cls, text: str) -> Tree | None:
        """The tree of a text; the last ones are kept, because a menu asks about one text several times."""
        return _parsed(text)

    # Places.

    def offset(self, line: int, byte_column: int) -> int:
        """The offset of a place as `ast` counts it."""
        start = self.starts[line - 1]
        if self.is_ascii:
            return start + byte_column
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        encoded = self.text[start:end].encode("utf-8", "surrogatepass")[:byte_column]
        return start + len(encoded.decode("utf-8", "ignore"))

    def start(self, node: ast.AST) -> int:
        """Where a node begins; a decorated definition begins at its first decorator."""
        decorators = getattr(node, "decorator_list", None)
        if decorators:
            first = self.start(decorators[0])
            return self.text.rindex("@", 0, first)
        return self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        return self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def segment(self, node: ast.AST, patches: tuple[Patch, ...] = ()) -> str:
        """The text of a node, after some patches inside of it."""
        start, end = self.start(node), self.end(node)
        inner = [Patch(one.start - start, one.end - start, one.text) for one in patches]
        return patched(self.text[start:end], tuple(inner))

    def offsets(self, span: Span) -> tuple[int, int]:
        """The offsets of a span, cut to the text."""
        return self._clipped(span.line, span.column), self._clipped(span.end_line, span.end_column)

    def _clipped(self, line: int, column: int) -> int:
        if line > len(self.starts):
            return len(self.text)
        return min(self.starts[max(line, 1) - 1] + column, len(self.text))

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column (in code points) of an offset."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1]

    def instead(self, node: ast.AST, text: str) -> Patch:
        """Put a text in the place of a node."""
        return Patch(self.start(node), self.end(node), text)

    def between(self, before: str, node: ast.AST, after: str) -> tuple[Patch, Patch]:
        """Put something in front of a node and something behind it."""
        start, end = self.start(node), self.end(node)
        return Patch(start, start, before), Patch(end, end, after)

    def edits(self, patches: tuple[Patch, ...]) -> tuple[Edit, ...]:
        """Patches with columns in code points, in reading order."""
        return tuple(
            Edit(Span(*self.place(patch.start), *self.place(patch.end)), patch.text)
            for patch in sorted(patches)
        )

    # Finding nodes.

    def node_at(self, span: Span) -> ast.AST | None:
        """The smallest expression or statement that covers a span; of a statement that is an expression, the latter."""
        start, end = self.offsets(span)
        best: ast.AST | None = None
        size = len(self.text) + 1
        for node in self._nodes_near(span.line, span.end_line):
            first, last = self.start(node), self.end(node)
            if first <= start and end <= last and last - first <= size:
                best, size = node, last - first
        return best

    def _nodes_near(self, line: int, end_line: int) -> Iterator[ast.AST]:
        """Statements and expressions whose lines cover the given ones, outer ones first."""
        waiting: list[ast.AST] = [self.module]
        while waiting:
            node = waiting.pop()
            for child in ast.iter_child_nodes(node):
                if not hasattr(child, "lineno"):
                    waiting.append(child)
                elif (
                    first_line(child) <= line and (getattr(child, "end_lineno", None) or end_line) >= end_line
                ):
                    waiting.append(child)
                    if isinstance(child, (ast.stmt, ast.expr)):
                        yield child

    def statements(self) -> Iterator[ast.stmt]:
        """Every statement of the text, however deep; expressions are not looked into."""
        waiting: list[ast.AST] = [self.module]
        while waiting:
            node = waiting.pop()
            for field in BLOCKS:
                for inner in getattr(node, field, ()):
                    if isinstance(inner, ast.stmt):
                        yield inner
                        waiting.append(inner)
            waiting.extend(getattr(node, "handlers", ()))
            waiting.extend(getattr(node, "cases", ()))

    def statement(self, node: ast.AST | None) -> ast.stmt | None:
        """The innermost statement that holds a node."""
        while node is not None and not isinstance(node, ast.stmt):
            node = self.parents.get(node)
        return node

    def statement_at(self, span: Span) -> ast.stmt | None:
        return self.statement(self.node_at(span))

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        parent = self.parents.get(node)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)

    def scope(self, node: ast.AST) -> Scope:
        """The function, or the module, whose names a statement binds."""
        for parent in self.ancestors(node):
            if isinstance(parent, FUNCTIONS):
                return parent
        return self.module

    def owner(self, node: ast.AST) -> ast.ClassDef | None:
        """The class whose method a node is in."""
        return next((parent for parent in self.ancestors(node) if isinstance(parent, ast.ClassDef)), None)

    def loops(self, node: ast.AST) -> list[ast.For | ast.AsyncFor | ast.While]:
        """The loops around a node within its function, innermost first; a loop's own iterable is outside of it."""
        found: list[ast.For | ast.AsyncFor | ast.While] = []
        child = node
        for parent in self.ancestors(node):
            if isinstance(parent, SCOPES):
                break
            if isinstance(parent, LOOPS) and (child in parent.body or child is getattr(parent, "test", None)):
                found.append(parent)
            child = parent
        return found

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The list of statements that a statement stands in."""
        parent = self.parents.get(statement)
        for field in BLOCKS:
            block = getattr(parent, field, None)
            if isinstance(block, list) and statement in block:
                return block
        return [statement]

    # Lines.

    @property
    def newline(self) -> str:
        """How the lines of this text end: as its first one does."""
        found = re.search(r"\r\n|\r|\n", self.text)
        return found.group() if found else "\n"

    @property
    def indent_unit(self) -> str:
        """What one level of indentation is in this text."""
        for node in self.module.body:
            for first in getattr(node, "body", ())[:1]:
                if first.lineno > node.lineno:
                    return self.indent(first) or "    "
        return "    "

    def indent(self, statement: ast.AST) -> str:
        """The white space before a statement on its line."""
        line = self.starts[self.place(self.start(statement))[0] - 1]
        found = re.compile(r"[ \t\f]*").match(self.text, line)
        return found.group() if found else ""

    def line_start(self, offset: int) -> int:
        return self.starts[self.place(offset)[0] - 1]

    def line_end(self, offset: int) -> int:
        """The end of the line an offset is on, before its line break."""
        found = re.compile(r"[\r\n]").search(self.text, offset)
        return found.start() if found else len(self.text)

    def next_line(self, offset: int) -> int:
        """The start of the line after the one an offset is on, or the end of the text."""
        line = self.place(offset)[0]
        return self.starts[line] if line < len(self.starts) else len(self.text)

    def begins_line(self, statement: ast.AST) -> bool:
        """Whether nothing but white space stands before a statement on its line."""
        start = self.start(statement)
        return not self.text[self.line_start(start) : start].strip()

    def ends_line(self, statement: ast.AST) -> bool:
        """Whether nothing but a comment follows a statement on its line."""
        rest = self.text[self.end(statement) : self.line_end(self.end(statement))].strip()
        return not rest or rest.startswith("#")

    def stands_alone(self, statement: ast.AST) -> bool:
        return self.begins_line(statement) and self.ends_line(statement)

    def is_elif(self, statement: ast.AST) -> bool:
        return isinstance(statement, ast.If) and self.text.startswith("elif", self.start(statement))


@lru_cache(maxsize=2)
def _parsed(text: str) -> Tree | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Tree(text, ast.parse(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def patched(text: str, patches: tuple[Patch, ...]) -> str:
    """The text after all patches."""
    pieces = []
    done = 0
    for patch in sorted(patches):
        pieces += [text[done : patch.start], patch.text]
        done = patch.end
    pieces.append(text[done:])
    return "".join(pieces)


def moved(offset: int, patches: tuple[Patch, ...]) -> int:
    """Where an offset of the old text is in the patched one; inside a replaced piece, the start of what replaced it."""
    shift = 0
    for patch in sorted(patches):
        if patch.end <= offset and not (patch.start == patch.end == offset and patch.text == ""):
            shift += len(patch.text) - (patch.end - patch.start)
        elif patch.start < offset:
            return patch.start + shift
    return offset + shift
