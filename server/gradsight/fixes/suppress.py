"""Comments that silence: one finding, or its rule in the whole file."""

from __future__ import annotations

import re

from gradsight.fixes.tree import Patch, Tree, patched
from gradsight.model.finding import Finding

FOR_FILE = re.compile(r"(#\s*gradsight:\s*ignore-file\[)([^\]]*)(\])", re.IGNORECASE)
OWN = re.compile(r"(#\s*gradsight:\s*ignore\[)([^\]]*)(\])", re.IGNORECASE)


def suppression(tree: Tree, finding: Finding) -> Patch | None:
    """Add the comment, or one more code to the comment that is there, on a line of the finding that can bear one."""
    last = min(finding.span.end_line, len(tree.starts))
    lines = [last, *range(finding.span.line, last)]
    for line in lines:
        start = tree.starts[line - 1]
        end = tree.line_end(start)
        known = OWN.search(tree.text, start, end)
        if known is not None:
            return _one_more(known, finding.code)
        stripped = len(tree.text[start:end].rstrip())
        patch = Patch(start + stripped, end, f"  # gradsight: ignore[{finding.code}]")
        if _changes_nothing(tree, patch):
            return patch
    return None


def file_suppression(tree: Tree, finding: Finding) -> Patch | None:
    """A comment that silences the rule in the whole file: one more code in the one that is there, or a first line."""
    known = FOR_FILE.search(tree.text)
    if known is not None:
        return _one_more(known, finding.code)
    lines = tree.text.splitlines(keepends=True)
    # A shebang and the encoding of the file stay first.
    first = next((number for number, line in enumerate(lines) if not line.startswith(("#!", "# -*-"))), 0)
    at = sum(len(line) for line in lines[:first])
    patch = Patch(at, at, f"# gradsight: ignore-file[{finding.code}]{tree.newline}")
    return patch if _changes_nothing(tree, patch) else None


def _one_more(known: re.Match[str], code: str) -> Patch:
    codes = known.group(2).strip()
    return Patch(known.start(2), known.end(2), f"{codes}, {code}" if codes else code)


def _changes_nothing(tree: Tree, patch: Patch) -> bool:
    """Whether the comment is one: not inside a string, and not behind a backslash that joins lines."""
    import ast

    changed = Tree.parse(patched(tree.text, (patch,)))
    return changed is not None and ast.dump(changed.module) == ast.dump(tree.module)
