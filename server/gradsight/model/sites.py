"""Where something happened: a syntax node of a unit, the calls that led there and the undecided branches it lies under.

*Unit*: one parsed top-level piece of a file; lines in it are relative, so that it can move without being parsed again.
*Frame*: one activation of a function (or of a module's top level).
*Decision*: an undecided branch and the way this path went.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.model.source import Span

Syntax = ast.AST
"""A piece of the source; whoever does not read it calls it so."""


class Unit:
    """A piece of a file: `path` and the line offset of its syntax nodes in the file as it is now."""

    __slots__ = ("binds", "first", "height", "library", "lines", "offset", "path", "repaired", "text", "tree")

    def __init__(self, path: str, text: str, tree: list[ast.stmt], first: int = 1) -> None:
        self.path = path
        self.text = text
        self.height = text.count("\n") + 1
        self.tree = tree
        self.first = first
        """The line number that the syntax nodes of the unit give to its first line."""
        self.offset = 0
        """What to add to a node's line number to get the line in the file as it is now."""
        self.lines: list[str] | None = None
        self.library = ""
        """The library that the unit is a model of; nothing is ever reported inside such a unit."""
        self.repaired = False
        """Whether broken lines in it were replaced so that the rest could be parsed."""
        self.binds: frozenset[str] | None = None
        """The names that executing the unit can bind, once they were asked for."""

    def lines_between(self, first: int, last: int) -> str:
        """The text of a range of lines, by the line numbers of the syntax nodes."""
        self.line(first)
        assert self.lines is not None
        return "\n".join(self.lines[max(0, first - self.first) : last - self.first + 1])

    @property
    def start(self) -> int:
        """The line of the file where the unit begins now."""
        return self.first + self.offset

    @property
    def end(self) -> int:
        """The line of the file where the unit ends now."""
        return self.start + self.height - 1

    def line(self, number: int) -> str:
        """The text of one line, by the line number of the syntax nodes."""
        if self.lines is None:
            self.lines = self.text.split("\n")
        index = number - self.first
        return self.lines[index] if 0 <= index < len(self.lines) else ""


class Numbering:
    """The numbers that one path has given to its objects: equal paths number them equally."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = 0


class Frame:
    """One activation.  `call_site` is where it was called from."""

    __slots__ = (
        "call_site",
        "calls",
        "depth",
        "exit",
        "expecting",
        "function",
        "global_names",
        "guards",
        "handed",
        "loops",
        "name",
        "namespace",
        "numbering",
        "owner",
        "receiver",
        "repeats",
        "scope",
        "unit",
        "watched",
        "yields",
    )

    def __init__(
        self, name: str, unit: Unit, namespace: dict[str, Any], scope: Any, depth: int, numbering: Numbering
    ) -> None:
        self.name = name
        self.unit = unit
        self.namespace = namespace
        self.scope = scope
        self.depth = depth
        self.numbering = numbering
        self.call_site: Site | None = None
        self.function: Any = None
        self.owner: Any = None
        self.receiver: Any = None
        self.expecting = ""
        """What errors the code being executed is there to provoke: none, `specific` ones, or `broad`: any."""
        self.guards: tuple[Any, ...] = ()
        self.loops: tuple[Any, ...] = ()
        self.global_names: set[str] | None = None
        self.watched: dict[str, Any] | None = None
        """Names of which a listener wants to hear when they are read, and what it keeps with them."""
        self.yields: Any = None
        self.calls: dict[Any, Any] | None = None
        """The first call of each function with each set of values, and how many repeated calls stand around this activation."""
        self.repeats = 0
        self.exit: ast.AST | None = None
        """The return statement by which the activation ended."""
        self.handed: Site | None = None
        """In a model of a library: where the user's code that it called last has returned a value to it."""


class Site:
    """A place in the source, at one moment of one path."""

    __slots__ = ("call", "expected", "frame", "guards", "library", "loops", "node", "unit")

    def __init__(self, node: ast.AST, frame: Frame) -> None:
        self.node = node
        self.unit = frame.unit
        self.frame = frame
        self.guards = frame.guards
        self.loops = frame.loops
        self.expected = bool(frame.expecting)
        """Whether an error that is raised here is caught, and meant to be."""
        self.call: Site | None = None
        """For a place that stands for a layer: where the layer was applied."""
        self.library = ""
        """For a place that stands for what a library does: the function of the library that does it."""

    @property
    def path(self) -> str:
        """The file."""
        return self.unit.path

    def span(self) -> Span:
        """The range of the node in the file as it is now, in code points."""
        return span_of(self.node, self.unit)

    @property
    def line(self) -> int:
        """The line in the file, counted from 1."""
        return int(getattr(self.node, "lineno", 1)) + self.unit.offset

    @property
    def key(self) -> tuple[str, int, int]:
        """Equal for two visits of the same place."""
        return (self.unit.path, self.line, int(getattr(self.node, "col_offset", 0)))

    def callers(self) -> list[Site]:
        """The calls that led here, innermost first."""
        calls = []
        if self.call is not None:
            return [self.call, *self.call.callers()]
        site = self.frame.call_site
        while site is not None:
            if not site.unit.library:
                calls.append(site)
            site = site.frame.call_site
        return calls


def span_of(node: ast.AST, unit: Unit) -> Span:
    """Where a node stands: `ast` counts columns in UTF-8 bytes, everything else in code points."""
    line = int(getattr(node, "lineno", 1))
    end_line = int(getattr(node, "end_lineno", None) or line)
    column = int(getattr(node, "col_offset", 0))
    end_column = int(getattr(node, "end_col_offset", None) or column)
    return Span(
        line + unit.offset,
        _code_points(unit, line, column),
        end_line + unit.offset,
        _code_points(unit, end_line, end_column),
    )


def _code_points(unit: Unit, line: int, byte_column: int) -> int:
    text = unit.line(line)
    if text.isascii():
        return byte_column
    return len(text.encode("utf-8", "surrogatepass")[:byte_column].decode("utf-8", "ignore"))
