"""Text with marks: lines of one version only, and lines that cause the hazard.

`@-` begins a line that only the hazardous version has, `@+` one that only its twin has; ` #!` ends a causing line.
"""

from __future__ import annotations

from collections.abc import Iterable

ONLY_HAZARD = "@-"
ONLY_TWIN = "@+"
CAUSE = " #!"


def indented(block: str, levels: int = 1) -> str:
    """The block further in; marks stay at the beginning."""
    return "\n".join(_shifted(line, "    " * levels) for line in lines_of(block))


def lines_of(block: str) -> list[str]:
    """The lines of a block, without empty ones at its ends."""
    return block.strip("\n").split("\n") if block.strip("\n") else []


def joined(*blocks: str) -> str:
    """Blocks one after the other; empty ones leave no line."""
    return "\n".join("\n".join(lines_of(block)) for block in blocks if block.strip("\n"))


def versions(block: str) -> tuple[list[str], list[str]]:
    """The lines of the hazardous version and of its twin, causes still marked."""
    hazard, twin = [], []
    for line in lines_of(block):
        if line.startswith(ONLY_HAZARD):
            hazard.append(line[2:])
        elif line.startswith(ONLY_TWIN):
            twin.append(line[2:])
        else:
            hazard.append(line)
            twin.append(line)
    return hazard, twin


def causes_of(lines: Iterable[str]) -> frozenset[int]:
    """The numbers of the causing lines."""
    return frozenset(number for number, line in enumerate(lines, 1) if line.endswith(CAUSE))


def unmarked(lines: Iterable[str]) -> str:
    """The text as a user has it."""
    return "\n".join(line.removesuffix(CAUSE) for line in lines) + "\n"


def caused(line: str, body: str) -> str:
    """A line that calls the body: it causes what the body causes."""
    return line + CAUSE if CAUSE in body else line


def _shifted(line: str, pad: str) -> str:
    if line.startswith((ONLY_HAZARD, ONLY_TWIN)):
        return line[:2] + pad + line[2:]
    return pad + line if line else line
