"""Where the user's program is: from running frames to places in the source.

A *frame key* is a code object with the offset of the running instruction.  A *stack* is a tuple of frame keys of the
user's own code, innermost first; torch, the standard library and installed packages are left out.  Capturing a stack
must be cheap, so lines and columns are worked out only when a place is shown.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys
import sysconfig
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, NamedTuple


class FrameKey(NamedTuple):
    """A running instruction of the user's code."""

    code: CodeType
    offset: int


Stack = tuple[FrameKey, ...]


@dataclass(frozen=True)
class SourceRange:
    """A range of source text: rows and columns count from 1, columns in code points, the end excluded."""

    filename: str
    row: int
    column: int
    end_row: int
    end_column: int
    function: str = ""
    cell: int = 0

    def as_json(self) -> dict[str, Any]:
        """The fields a finding shows."""
        fields: dict[str, Any] = {
            "filename": self.filename,
            "location": {"row": self.row, "column": self.column},
            "end_location": {"row": self.end_row, "column": self.end_column},
        }
        if self.cell:
            fields["cell"] = self.cell
        return fields


def _installed_roots() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    roots = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    roots.add(os.path.dirname(os.path.abspath(__file__)))
    return tuple(os.path.join(os.path.realpath(root), "") for root in roots) + tuple(
        os.path.join(root, "") for root in roots
    )


def _installed_names(root: str) -> Iterator[str]:
    try:
        folders = [name for name in os.listdir(root) if name.endswith(".dist-info")]
    except OSError:
        return
    for folder in folders:
        try:
            with open(os.path.join(root, folder, "RECORD"), encoding="utf-8", errors="replace") as file:
                yield from {line.split(",")[0].split("/")[0] for line in file}
        except OSError:
            continue


class _UserFiles:
    """Which source files belong to the user."""

    def __init__(self) -> None:
        self.known: dict[str, bool] = {}
        self.named: set[str] = set()
        self.roots = _installed_roots()
        self._recorded: dict[str, frozenset[str]] = {}

    def claim(self, filename: str) -> None:
        """This file is the user's, wherever it lies."""
        self.named.add(filename)
        self.known[filename] = True

    def decide(self, filename: str) -> bool:
        if filename in self.named:
            verdict = True
        elif filename.startswith("<"):
            verdict = filename.startswith("<ipython-input")
        else:
            full = os.path.abspath(filename)
            verdict = (
                not full.startswith(self.roots)
                and "site-packages" not in full
                and "dist-packages" not in full
                and not self.is_recorded(full)
            )
        self.known[filename] = verdict
        return verdict

    def is_recorded(self, full: str) -> bool:
        """Whether an installer wrote down that it put this file here: `pip install --target`, a vendored folder."""
        for entry in sys.path:
            root = os.path.join(os.path.abspath(entry), "")
            if entry and full.startswith(root) and full[len(root) :].split(os.sep)[0] in self._names_in(root):
                return True
        return False

    def _names_in(self, root: str) -> frozenset[str]:
        """The top-level names of all that was installed into a folder."""
        names = self._recorded.get(root)
        if names is None:
            names = self._recorded[root] = frozenset(_installed_names(root))
        return names


_FILES = _UserFiles()
_CELLS: dict[str, tuple[str, int]] = {}
_find_cell: Callable[[str], tuple[str, int] | None] | None = None
_INTERNED: dict[tuple[int, ...], Stack] = {}
_NO_FRAMES: Stack = ()


def claim_file(filename: str) -> None:
    """Counts this file as the user's, even inside an installed package."""
    _FILES.claim(filename)


def claim_cell(filename: str, notebook: str, cell: int) -> None:
    """Shows this pseudo file as one cell of a notebook."""
    _FILES.claim(filename)
    _CELLS[filename] = (notebook, cell)


def find_cells_by(finder: Callable[[str], tuple[str, int] | None] | None) -> None:
    """Asks this for the notebook and the cell of a file that is not known as one."""
    global _find_cell
    _find_cell = finder


def is_user_file(filename: str) -> bool:
    """Whether code from this file is the user's own."""
    known = _FILES.known.get(filename)
    return _FILES.decide(filename) if known is None else known


def capture(skip: int = 1, limit: int = 6) -> Stack:
    """The user's frames that are running now, innermost first."""
    return capture_from(sys._getframe(skip), limit)


def capture_from(frame: FrameType | None, limit: int = 6) -> Stack:
    """The user's frames from this one outwards."""
    known = _FILES.known
    key: list[int] = []
    codes: list[CodeType] = []
    while frame is not None:
        code = frame.f_code
        user = known.get(code.co_filename)
        if user is None:
            user = _FILES.decide(code.co_filename)
        if user:
            codes.append(code)
            key.append(id(code))
            key.append(frame.f_lasti)
            limit -= 1
            if not limit:
                break
        frame = frame.f_back
    if not key:
        return _NO_FRAMES
    lookup = tuple(key)
    stack = _INTERNED.get(lookup)
    if stack is None:
        # The stack holds its code objects, so that the numbers they are looked up by stay theirs.
        stack = _INTERNED[lookup] = tuple(map(FrameKey, codes, key[1::2]))
    return stack


def user_frames() -> Iterator[FrameType]:
    """The live frames of the user's code, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def library_frames() -> Iterator[FrameType]:
    """The live frames between here and the innermost user frame."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        yield frame
        frame = frame.f_back


def library_frame(frame: FrameType | None) -> FrameKey | None:
    """The innermost line of a library between this frame and the user's; torch and Python's own are none."""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        if _is_library(frame.f_code.co_filename):
            return FrameKey(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None


def library_among(frames: Sequence[FrameType]) -> FrameKey | None:
    """The same for the frames of a traceback, outermost first."""
    for frame in reversed(frames):
        if is_user_file(frame.f_code.co_filename):
            return None
        if _is_library(frame.f_code.co_filename):
            return FrameKey(frame.f_code, frame.f_lasti)
    return None


def remember_library(stack: Stack, key: FrameKey | None) -> None:
    """The user's line called backward through this line of a library; the last one stands."""
    if key is not None:
        _BACKWARD_IN[stack] = key


def library_behind(stack: Stack) -> FrameKey | None:
    """The line of a library that called backward for this line of the user."""
    return _BACKWARD_IN.get(stack)


def library_name(key: FrameKey) -> str:
    """The name of the package that a line of a library belongs to."""
    filename = os.path.abspath(key.code.co_filename)
    for root in sorted({os.path.abspath(entry) for entry in sys.path if entry}, key=len, reverse=True):
        if filename.startswith(os.path.join(root, "")):
            return filename[len(root) + 1 :].split(os.sep)[0].split(".")[0]
    return os.path.basename(os.path.dirname(filename))


_LIBRARY: dict[str, bool] = {}
_BACKWARD_IN: dict[Stack, FrameKey] = {}


def _is_library(filename: str) -> bool:
    known = _LIBRARY.get(filename)
    if known is None:
        full = os.path.abspath(filename)
        torch: Any = sys.modules.get("torch")
        own = (__file__, *((torch.__file__,) if torch is not None else ()))
        is_own = any(
            full.startswith(os.path.join(os.path.dirname(os.path.abspath(each)), "")) for each in own
        )
        is_installed = "site-packages" in full or "dist-packages" in full or _FILES.is_recorded(full)
        known = _LIBRARY[filename] = not filename.startswith("<") and is_installed and not is_own
    return known


def line_name(place: SourceRange) -> str:
    """`line 7`; of a notebook `cell 3, line 2`."""
    return f"cell {place.cell}, line {place.row}" if place.cell else f"line {place.row}"


def line_of(key: FrameKey) -> int:
    """The line of the running instruction."""
    code, offset = key
    if hasattr(code, "co_lines"):
        for start, end, line in code.co_lines():
            if start <= offset < end and line is not None:
                return int(line)
        return code.co_firstlineno
    import dis

    line = code.co_firstlineno
    for start, start_line in dis.findlinestarts(code):
        if start > offset:
            break
        if start_line is not None:
            line = start_line
    return line


def place_of(key: FrameKey) -> SourceRange:
    """The source range of the running call: exact from Python 3.11 on, the statement's line before."""
    code, offset = key
    filename = code.co_filename
    span = _exact_span(code, offset) if hasattr(code, "co_positions") else None
    if span is None:
        line = line_of(key)
        text = _without_comment(linecache.getline(filename, line))
        indent = len(text) - len(text.lstrip())
        span = (line, line, indent, max(len(text), indent + 1))
        row, end_row, column, end_column = span
    else:
        row, end_row, start, end = span
        column = _code_points(filename, row, start)
        end_column = _code_points(filename, end_row, end)
    notebook = _CELLS.get(filename)
    if notebook is None and _find_cell is not None:
        notebook = _find_cell(filename)
        if notebook is not None:
            claim_cell(filename, *notebook)
    if notebook is not None:
        return SourceRange(notebook[0], row, column + 1, end_row, end_column + 1, code.co_name, notebook[1])
    return SourceRange(filename, row, column + 1, end_row, end_column + 1, code.co_name)


def _without_comment(line: str) -> str:
    """A line of code without what stands behind it."""
    try:
        for token in tokenize.generate_tokens(iter((line,)).__next__):
            if token.type == tokenize.COMMENT:
                return line[: token.start[1]].rstrip()
    except (tokenize.TokenError, IndentationError, SyntaxError, StopIteration):
        pass  # The line is a part of a statement, which tokens say only at its end.
    return line.rstrip()


def _exact_span(code: CodeType, offset: int) -> tuple[int, int, int, int] | None:
    positions: Any = code.co_positions  # type: ignore[attr-defined]
    for index, position in enumerate(positions()):
        if index == offset // 2:
            if None in position:
                return None
            row, end_row, column, end_column = position
            return (row or 0, end_row or 0, column or 0, end_column or 0)
    return None


def _code_points(filename: str, row: int, column: int) -> int:
    """CPython counts columns in UTF-8 bytes."""
    text = linecache.getline(filename, row)
    if text.isascii():
        return column
    return len(text.encode("utf-8")[:column].decode("utf-8", "replace"))


def text_of(place: SourceRange, limit: int = 60) -> str:
    """The source text of a place on one line, for messages."""
    filename = place.filename
    for pseudo, (notebook, cell) in _CELLS.items():
        if notebook == place.filename and cell == place.cell:
            filename = pseudo
    if place.end_row == place.row:
        text = linecache.getline(filename, place.row)[place.column - 1 : place.end_column - 1]
    else:
        rows = [
            linecache.getline(filename, row)
            for row in range(place.row, min(place.end_row, place.row + 8) + 1)
        ]
        if rows:
            rows[0] = rows[0][place.column - 1 :]
            if place.end_row < place.row + len(rows):
                rows[-1] = rows[-1][: place.end_column - 1]
        text = " ".join(row.strip() for row in rows)
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def same_line(left: Stack, right: Stack) -> bool:
    """Whether both stacks stand on the same line of the user's code."""
    if not left or not right:
        return False
    if left[0].code is not right[0].code:
        return False
    return left[0].offset == right[0].offset or line_of(left[0]) == line_of(right[0])


_TREES: dict[str, ast.Module | None] = {}


def tree_of(filename: str) -> ast.Module | None:
    """The syntax tree of a user file, or None when it does not parse."""
    if filename not in _TREES:
        try:
            _TREES[filename] = ast.parse("".join(linecache.getlines(filename)))
        except (SyntaxError, ValueError):
            _TREES[filename] = None
    return _TREES[filename]


def statement_at(filename: str, line: int) -> ast.stmt | None:
    """The innermost statement that covers this line."""
    tree = tree_of(filename)
    found: ast.stmt | None = None
    todo: list[ast.AST] = [tree] if tree is not None else []
    while todo:
        node = todo.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                if child.lineno <= line <= (child.end_lineno or child.lineno):
                    found = child
                    todo.append(child)
            elif isinstance(child, (ast.excepthandler, ast.expr)) or type(child).__name__ == "match_case":
                todo.append(child)
    return found


def statement_of(key: FrameKey) -> ast.stmt | None:
    """The statement that a frame is executing."""
    return statement_at(key.code.co_filename, line_of(key))


def feeds_itself(statement: ast.stmt | None) -> bool:
    """Whether a statement binds a name that it also reads: `h = cell(x, h)`, `total += loss`."""
    if isinstance(statement, ast.AugAssign):
        return True
    if not isinstance(statement, ast.Assign):
        return False
    bound = {ast.dump(node) for target in statement.targets for node in _stores_in(target)}
    read = {
        ast.dump(node).replace("Load()", "Store()")
        for node in ast.walk(statement.value)
        if isinstance(node, (ast.Name, ast.Attribute))
    }
    return bool({text.replace("Load()", "Store()") for text in bound} & read)


def _stores_in(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _stores_in(item)
    elif isinstance(target, ast.Starred):
        yield from _stores_in(target.value)
    else:
        yield target


def names_read(statement: ast.stmt | None) -> set[str]:
    """The plain names that a statement reads; the bodies of compound statements are not its own."""
    found: set[str] = set()
    todo: list[ast.AST] = [statement] if statement is not None else []
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        todo.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt))
    return found
