"""`--gaps`: what was not understood, and where, so that silence is not taken for health."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradsight.cli.checking import Result
from gradsight.cli.documents import Documents
from gradsight.model.report import Coverage, Gap
from gradsight.model.showing import visible
from gradsight.model.source import Span
from gradsight.session.shown_paths import shown_path

KINDS = {
    "budget": "limit of work",
    "import": "not found",
    "unknown": "not known",
    "syntax": "does not parse",
    "internal": "fault of gradsight",
    "detector": "fault of gradsight in one check",
}


def lines_of(results: tuple[Result, ...], documents: Documents) -> Iterator[str]:
    """A line for each file that has something to tell, and one below it for each gap."""
    for result in results:
        if result.gaps or result.coverage is not None:
            yield f"{shown_path(result.path)}: {counted(result.coverage, result.gaps)}"
            for gap in _ordered(result.gaps):
                times = "" if gap.count == 1 else f" ({gap.count} times)"
                place = _place(result.path, gap, documents)
                yield f"  {place}{KINDS[gap.kind]}: {visible(gap.reason)}{times}"


def counted(coverage: Coverage | None, gaps: tuple[Gap, ...]) -> str:
    """How much of a file was analysed: `31 functions, 2 not analysed, 3 gaps`."""
    parts = []
    if coverage is not None:
        parts.append(f"{coverage.functions} function{'' if coverage.functions == 1 else 's'}")
        parts.append(f"{coverage.not_analysed} not analysed" if coverage.not_analysed else "all analysed")
    parts.append(f"{len(gaps)} gap{'' if len(gaps) == 1 else 's'}")
    return ", ".join(parts)


def as_json(result: Result, documents: Documents) -> dict[str, Any]:
    """What is told of one file."""
    coverage = result.coverage
    return {
        "filename": result.path,
        "functions": coverage.functions if coverage is not None else None,
        "not_analysed": coverage.not_analysed if coverage is not None else None,
        "gaps": [_gap(result.path, gap, documents) for gap in _ordered(result.gaps)],
    }


def _gap(path: str, gap: Gap, documents: Documents) -> dict[str, Any]:
    position = documents.position(gap.path or path, Span(gap.line, 0, gap.line, 0)) if gap.line else None
    cell = {} if position is None or position.cell is None else {"cell": position.cell}
    row = position.span.line if position is not None else None
    where = {"filename": gap.path or path, **cell, "row": row}
    return {"kind": gap.kind, "reason": gap.reason, **where, "count": gap.count}


def _place(path: str, gap: Gap, documents: Documents) -> str:
    name = f"{shown_path(gap.path)}, " if gap.path else ""
    if not gap.line:
        return name
    position = documents.position(gap.path or path, Span(gap.line, 0, gap.line, 0))
    cell = f"cell {position.cell}, " if position.cell is not None else ""
    return f"{name}{cell}line {position.span.line}: "


def _ordered(gaps: tuple[Gap, ...]) -> list[Gap]:
    return sorted(gaps, key=lambda gap: (gap.path, gap.line, gap.kind, gap.reason))
