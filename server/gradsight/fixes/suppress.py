"""A comment that silences one finding."""

from __future__ import annotations

import re

from gradsight.fixes.tree import Patch, Tree, patched
from gradsight.model.finding import Finding

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
            codes = known.group(2).strip()
            return Patch(known.start(2), known.end(2), f"{codes}, {finding.code}" if codes else finding.code)
        stripped = len(tree.text[start:end].rstrip())
        patch = Patch(start + stripped, end, f"  # gradsight: ignore[{finding.code}]")
        if _changes_nothing(tree, patch):
            return patch
    return None


def _changes_nothing(tree: Tree, patch: Patch) -> bool:
    """Whether the comment is one: not inside a string, and not behind a backslash that joins lines."""
    import ast

    changed = Tree.parse(patched(tree.text, (patch,)))
    return changed is not None and ast.dump(changed.module) == ast.dump(tree.module)
