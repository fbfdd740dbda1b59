"""`--diff BASE`: only what has to do with lines that changed since a commit, as git sees it.

A finding counts when its own line changed, or a line that it rests on: where the value was kept, needed or cut.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gradsight.cli.merge_results import MergedResults
from gradsight.model.finding import Finding
from gradsight.model.source import Span

# Whatever the user prefers for their own eyes.
_PLAIN = ("--no-color", "--no-ext-diff", "--no-renames", "--unified=0", "--src-prefix=a/", "--dst-prefix=b/")
_HUNK = re.compile(rb"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


class NoDiff(Exception):
    """git could not tell what changed; the text says why."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Changed lines by absolute path; `whole` files are new, or have no lines that mean anything."""

    lines: Mapping[str, frozenset[int]] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()

    def touch(self, path: str, span: Span) -> bool:
        """Whether one of the lines of a span changed."""
        real = os.path.realpath(path)
        if real in self.whole:
            return True
        changed = self.lines.get(real, frozenset())
        return any(line in changed for line in range(span.line, span.end_line + 1))


def narrow(gathered: MergedResults, changes: Changes) -> MergedResults:
    """The findings that changed lines have to do with."""
    return replace(gathered, findings=tuple(each for each in gathered.findings if concerns(each, changes)))


def concerns(finding: Finding, changes: Changes) -> bool:
    """Whether a finding rests on a changed line; where a function was called from does not count."""
    places = [(finding.path, finding.span)]
    places += [(step.path, step.span) for step in finding.related if step.role != "call"]
    return any(changes.touch(path, span) for path, span in places)


def changes_since(base: str, paths: Iterable[str]) -> Changes:
    """What changed since a commit in the repositories that these paths lie in; new files count as changed."""
    lines: dict[str, frozenset[int]] = {}
    whole: set[str] = set()
    for root in sorted({_root_of(path) for path in paths}):
        difference = _git(root, "diff", *_PLAIN, "--end-of-options", base, "--", ".")
        for name, changed in parse(difference).items():
            path = os.path.realpath(os.path.join(root, name))
            lines[path] = changed
            if path.endswith(".ipynb"):
                # The lines of the file are not those of its cells.
                whole.add(path)
        new = _git(root, "ls-files", "-z", "--others", "--exclude-standard").split(b"\0")
        whole |= {os.path.realpath(os.path.join(root, os.fsdecode(each))) for each in new if each}
    return Changes(lines, frozenset(whole))


def parse(difference: bytes) -> dict[str, frozenset[int]]:
    """The new lines of each file in a unified diff without context."""
    found: dict[str, set[int]] = {}
    current: set[int] | None = None
    for line in difference.split(b"\n"):
        if line.startswith(b"+++ "):
            name = _name(line[4:])
            current = found.setdefault(name, set()) if name else None
        elif current is not None and (hunk := _HUNK.match(line)):
            start, count = int(hunk.group(1)), int(hunk.group(2) or b"1")
            current.update(range(start, start + count))
    return {name: frozenset(rows) for name, rows in found.items()}


def _name(written: bytes) -> str:
    """A file name as git writes it: after `b/`, quoted when it has strange characters; empty for a deleted file."""
    written = written.split(b"\t")[0].rstrip(b"\r")
    if written == b"/dev/null":
        return ""
    if written.startswith(b'"'):
        written = written[1:-1].decode("unicode_escape").encode("latin-1")
    return os.fsdecode(written.removeprefix(b"b/"))


def _root_of(path: str) -> str:
    folder = path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return os.fsdecode(_git(folder, "rev-parse", "--show-toplevel").rstrip(b"\n"))


def _git(folder: str, *arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, check=False)
    except OSError:
        raise NoDiff("--diff needs git, and there is none on the PATH") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise NoDiff(f"git cannot tell what changed: {said[0] if said else 'no reason given'}")
    return done.stdout
