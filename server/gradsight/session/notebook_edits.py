"""Changes of the module that a notebook's cells make, written back into the cells of its file.

Every line of the module is one line of a cell, in the same columns, so that a change has the same place in both.  Everything
else in the file stays: outputs, metadata, the order of keys.
"""

from __future__ import annotations

import json
import re
from typing import Any

from gradsight.fixes.difference import difference
from gradsight.model.fix import Edit, apply_edits, line_starts
from gradsight.model.source import Span
from gradsight.session.notebooks import JoinedCells

_INDENT = re.compile(r"^( +)\S", re.MULTILINE)


def with_module(text: str, joined: JoinedCells, module: str) -> str | None:
    """The file with the cells that make this module; None where a change lies across the border of two cells."""
    edits: dict[int, list[Edit]] = {}
    starts = line_starts(joined.source.text)
    for patch in difference(joined.source.text, module):
        span = _span(starts, patch.start, patch.end)
        index, inside = joined.locate(span)
        last, _ = joined.cell_of(span.end_line)
        new = patch.text
        if last != index:
            return None
        edits.setdefault(index, []).append(Edit(inside, new))
    content: Any = json.loads(text)
    for index, own in edits.items():
        cell = joined.cells[index]
        lines = cell.text.split("\n")
        changed = apply_edits(cell.text + "\n", tuple(_inside(edit, lines) for edit in own)).removesuffix(
            "\n"
        )
        entry = content["cells"][cell.number - 1]
        entry["source"] = (
            changed.splitlines(keepends=True) if isinstance(entry.get("source"), list) else changed
        )
    indent = _INDENT.search(text)
    written = json.dumps(
        content, indent=len(indent.group(1)) if indent else None, ensure_ascii=text.isascii()
    )
    return written + ("\n" if text.endswith("\n") else "")


def _inside(edit: Edit, lines: list[str]) -> Edit:
    """An edit that is not past the end of its cell."""
    last = len(lines) + 1
    span = edit.span
    if span.line <= last and span.end_line <= last:
        return edit
    end = Span(min(span.line, last), span.column, min(span.end_line, last), span.end_column)
    return Edit(end, edit.text)


def _span(starts: list[int], start: int, end: int) -> Span:
    from bisect import bisect_right

    first, last = bisect_right(starts, start) - 1, bisect_right(starts, end) - 1
    if last > first and end == starts[last] and start < end:
        # A change that takes whole lines ends with its last line, not at the beginning of the next.
        return Span(first + 1, start - starts[first], last + 1, 0)
    return Span(first + 1, start - starts[first], last + 1, end - starts[last])
