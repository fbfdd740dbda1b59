"""The repair of a fault that a run showed: the one that the engine has for its own prediction of the same fault."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradsight.model.finding import Finding
from gradsight.model.fix import Fix, apply_edits
from gradsight.model.report import Report
from gradsight.model.source import Source
from gradsight.session.pages import page_url
from gradsight.session.verdicts import fault_finding, same_fault

MOST_FAULTS = 12
log = logging.getLogger(__name__)


def with_remedies(document: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """The document of a probe, each fault with the repair of it; `texts` are programs that no file has."""
    shelf: dict[str, tuple[Source, Report] | None] = {}
    faults = []
    for number, fault in enumerate(document["faults"]):
        fix = _guarded(fault, shelf, texts) if number < MOST_FAULTS and "cell" not in fault else None
        url = page_url(fault["name"]) if fault["name"] else None
        faults.append({**fault, "fix": fix, "url": url})
    return {**document, "faults": faults}


def _guarded(
    fault: Mapping[str, Any], shelf: dict[str, tuple[Source, Report] | None], texts: Mapping[str, str]
) -> dict[str, Any] | None:
    """The repair of one fault; a mistake of ours in it must not take the report of a long run away."""
    path = str(fault["filename"])
    try:
        if path not in shelf:
            shelf[path] = _read(path, texts)
        entry = shelf[path]
        return _fix_of(fault, *entry) if entry is not None else None
    except Exception:
        if os.environ.get("GRADSIGHT_STRICT"):
            raise
        log.exception("no fix could be worked out for %s in %s", fault["code"], path)
        return None


def _read(path: str, texts: Mapping[str, str]) -> tuple[Source, Report] | None:
    from gradsight.analysis import analyze

    try:
        text = texts[path] if path in texts else Path(path).read_text("utf-8")
    except (OSError, ValueError):
        return None
    source = Source(path, text)
    return source, analyze(source)


def _fix_of(fault: Mapping[str, Any], source: Source, report: Report) -> dict[str, Any] | None:
    """The preferred repair: a message, whether it is safe, its edits, and the lines it changes."""
    from gradsight.fixing import fixes_for

    seen = fault_finding(fault)
    predicted: Finding | None = next((each for each in report.findings if same_fault(each, seen)), None)
    fixes = fixes_for(source, predicted, report=report) if predicted is not None else []
    return _as_json(source, fixes[0]) if fixes else None


def _as_json(source: Source, fix: Fix) -> dict[str, Any]:
    return {
        "message": fix.title,
        "applicability": fix.safety,
        "edits": [
            {
                "content": edit.text,
                "location": {"row": edit.span.line, "column": edit.span.column + 1},
                "end_location": {"row": edit.span.end_line, "column": edit.span.end_column + 1},
            }
            for edit in fix.edits
        ],
        "lines": _changed_lines(source.text, fix),
    }


def _changed_lines(text: str, fix: Fix) -> list[list[Any]]:
    """The lines that a repair takes away and those it puts there, as (`-` or `+`, row, text)."""
    import difflib

    before, after = text.splitlines(), apply_edits(text, fix.edits).splitlines()
    changed: list[list[Any]] = []
    for kind, start, end, new_start, new_end in difflib.SequenceMatcher(
        None, before, after, False
    ).get_opcodes():
        if kind != "equal":
            changed += [["-", row + 1, before[row]] for row in range(start, end)]
            changed += [["+", row + 1, after[row]] for row in range(new_start, new_end)]
    return changed
