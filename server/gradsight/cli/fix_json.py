"""The fix of a finding as JSON: what `gradsight fix` would do about it, in the terms of the text it was found in."""

from __future__ import annotations

from typing import Any

from gradsight.model.finding import Finding
from gradsight.model.fix import Fix
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session.reading import reader
from gradsight.session.workspace import WorkspaceFinder, project_root


def fix_as_json(finding: Finding, source: Source | None, settings: Settings) -> dict[str, Any] | None:
    """The preferred fix of a finding: a message, whether it is safe, and edits whose rows and columns start at 1."""
    fix = preferred_fix(finding, source, settings)
    if fix is None:
        return None
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
    }


def preferred_fix(finding: Finding, source: Source | None, settings: Settings) -> Fix | None:
    """The fix that is offered first, verified in the workspace that the file belongs to."""
    from gradsight.analysis import analyze
    from gradsight.fixing import fixes_for

    if source is None or finding.severity == "hint":
        return None
    finder = WorkspaceFinder(project_root(source.path), reader())
    fixes = fixes_for(source, finding, settings, check=lambda text: analyze(text, settings, finder))
    return fixes[0] if fixes else None
