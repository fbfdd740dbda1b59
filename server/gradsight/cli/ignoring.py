"""`check --add-ignore`: a comment behind every finding, so that only new ones are reported from now on."""

from __future__ import annotations

from collections.abc import Sequence

from gradsight.cli.shell import complain
from gradsight.cli.writing import Changed, encode, replace_file
from gradsight.model.finding import Finding
from gradsight.model.fix import apply_edits
from gradsight.model.source import Source
from gradsight.session.reading import Unreadable, decode, read_bytes
from gradsight.session.shown_paths import shown_path


def add_comments(findings: Sequence[Finding]) -> tuple[int, bool]:
    """Write the comments; how many findings they silence, and whether every file could be written."""
    silenced, is_fine = 0, True
    for path in dict.fromkeys(finding.path for finding in findings):
        own = [finding for finding in findings if finding.path == path]
        if path.endswith(".ipynb"):
            complain(f"{shown_path(path)}: comments are not added to notebooks")
            is_fine = False
            continue
        data = read_bytes(path)
        text = decode(data) if isinstance(data, bytes) else data
        if isinstance(text, Unreadable) or not isinstance(data, bytes):
            complain(f"{shown_path(path)}: cannot be read")
            is_fine = False
            continue
        new, count = with_comments(path, text, own)
        try:
            replace_file(path, data, encode(new, data))
            silenced += count
        except (Changed, OSError) as problem:
            complain(f"{shown_path(path)}: cannot be written: {problem}")
            is_fine = False
    return silenced, is_fine


def with_comments(path: str, text: str, findings: Sequence[Finding]) -> tuple[str, int]:
    """A text with a comment for each finding, the last first: a comment moves nothing above it."""
    from gradsight.fixing import suppress_edit

    count = 0
    for finding in sorted(findings, key=lambda each: each.span, reverse=True):
        fix = suppress_edit(Source(path, text), finding)
        if fix is not None:
            text = apply_edits(text, fix.edits)
            count += 1
    return text, count
