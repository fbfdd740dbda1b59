"""`--output-format full`: each finding laid out with its source, then one line that sums up.

A pipe gets the plain text; a terminal gets colours from rich, which is imported only then.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TextIO

from gradsight.cli.ci_options import ALARMS, MOST_TRIED
from gradsight.cli.documents import Documents
from gradsight.cli.merge_results import MergedResults
from gradsight.model.finding import Finding
from gradsight.model.showing import in_place
from gradsight.rules import find
from gradsight.session.finding_text import Run, lay_out, plain

STYLES = {
    "error": "bold red",
    "warning": "bold yellow",
    "info": "bold blue",
    "hint": "bold cyan",
    "path": "bold",
    "gutter": "dim cyan",
    "trail": "cyan",
    "faint": "dim",
    "good": "bold green",
}


def write(gathered: MergedResults, documents: Documents, out: TextIO, color: str) -> None:
    """All findings, then one line that sums up."""
    fixable = fixable_findings(gathered, documents)
    lines: list[list[Run]] = []
    for finding in gathered.findings:
        lines += [*lay_out(finding, documents, finding in fixable.safe), []]
    lines += summary(gathered, fixable)
    put(lines, out, color)


@dataclass(frozen=True, slots=True)
class Fixable:
    """The findings that have a fix, by whether it is safe."""

    safe: tuple[Finding, ...] = ()
    unsafe: tuple[Finding, ...] = ()
    is_tried: bool = True
    """False: there are so many findings that nobody waits for their fixes to be tried."""

    def __str__(self) -> str:
        if not self.is_tried:
            return ", `gradsight fix --diff` shows what can be fixed"
        safe, unsafe = len(self.safe), len(self.unsafe)
        more = f"{unsafe} more with `--unsafe`" if safe else f"{unsafe} fixable with `gradsight fix --unsafe`"
        parts = (f"{safe} fixable with `gradsight fix`" if safe else "", more if unsafe else "")
        return "".join(f", {part}" for part in parts if part)


def fixable_findings(gathered: MergedResults, documents: Documents) -> Fixable:
    """The findings that have a fix."""
    alarms = [finding for finding in gathered.findings if finding.severity in ALARMS and find(finding.code)]
    if not 0 < len(alarms) <= MOST_TRIED:
        return Fixable(is_tried=not alarms)
    from gradsight.cli.fix_json import FixBook

    with FixBook(documents) as book:
        tried = [(finding, book.safety(finding)) for finding in alarms]
    return Fixable(
        tuple(finding for finding, safety in tried if safety == "safe"),
        tuple(finding for finding, safety in tried if safety == "unsafe"),
    )


def put(lines: list[list[Run]], out: TextIO, color: str) -> None:
    """Write lines out, painted where that is wanted."""
    if wants_color(out, color):
        _paint(lines, out, forced=color == "always")
    else:
        out.write("".join(f"{line}\n" for line in plain(lines)))


def summary(gathered: MergedResults, fixable: Fixable) -> list[list[Run]]:
    """One line that sums up; none where only the findings are wanted."""
    return [] if gathered.is_quiet else [counted(gathered, fixable)]


def counted(gathered: MergedResults, fixable: Fixable) -> list[Run]:
    """How much was found, and how much of it can be fixed."""
    files = f"{gathered.checked} file{'' if gathered.checked == 1 else 's'}"
    counts = [
        (count, severity)
        for severity in ("error", "warning", "info", "hint")
        if (count := sum(finding.severity == severity for finding in gathered.findings))
    ]
    if not counts and not gathered.checked and gathered.looked_at:
        one = gathered.looked_at == 1
        read = "1 file" if one else f"{gathered.looked_at} files"
        return [(f"{read} checked, no torch in {'it' if one else 'them'}", "faint")]
    if not counts:
        return [(f"no findings in {files} with torch", "faint")]
    runs: list[Run] = []
    for count, severity in counts:
        plural = "" if count == 1 or severity == "info" else "s"
        runs += [(", ", "faint")] if runs else []
        runs.append((f"{count} {severity}{plural}", severity))
    return [*runs, (f" in {files} with torch{fixable}", "faint")]


def wants_color(out: TextIO, color: str) -> bool:
    """Whether to paint: on a terminal, unless the user says otherwise."""
    if color != "auto":
        return color == "always"
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _paint(lines: list[list[Run]], out: TextIO, forced: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=out, force_terminal=forced or None, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text.assemble(*((in_place(text), _style(style)) for text, style in line)))


def _style(style: str) -> str:
    """A style as rich spells it."""
    return f"bold {style}" if style.startswith("link ") else STYLES.get(style, "")
