"""The notes that `gradsight.watch()` leaves on an exception, read back from a traceback that somebody pasted."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradsight.model.showing import as_code, as_markdown, sentence_markdown

_HEAD = re.compile(r"^\s*(?:\|\s*)?gradsight: (?P<said>.+) \[(?P<code>GS\d+)\]\s*$", re.MULTILINE)
_STEP = re.compile(r"^\s+(?P<role>[a-z]+)\s+(?P<path>\S.*?):(?P<line>\d+)(?:\s+(?P<source>\S.*?))?\s*$")
_CELL_STEP = re.compile(
    r"^\s+(?P<role>[a-z]+)\s+cell (?P<cell>\d+), line (?P<line>\d+)(?:\s+(?P<source>\S.*?))?\s*$"
)
_HELP = re.compile(r"^\s+help: (?P<advice>.+)$")


@dataclass(frozen=True, slots=True)
class NoteStep:
    """One line of the trail: what happened, and where; of a cell also what stands there, as no file has it."""

    role: str
    path: str
    line: int
    cell: int = 0
    source: str = ""


@dataclass(frozen=True, slots=True)
class WatchNote:
    """What a watch saw: its sentence, the rule, the lines and the advice."""

    said: str
    code: str
    steps: tuple[NoteStep, ...]
    advice: str = ""


def notes_in(text: str, known_paths: Sequence[str] = ()) -> list[WatchNote]:
    """The notes in a traceback; paths that are written from a folder are completed by the files that the traceback names."""
    found = []
    for head in _HEAD.finditer(text):
        steps, advice = [], ""
        for line in text[head.end() :].lstrip("\n").split("\n"):
            if match := _HELP.match(line):
                advice = match.group("advice").strip()
                break
            if match := _CELL_STEP.match(line):
                number, source = int(match.group("cell")), match.group("source") or ""
                steps.append(NoteStep(match.group("role"), "", int(match.group("line")), number, source))
                continue
            if not (match := _STEP.match(line)):
                break
            path = _completed(match.group("path"), known_paths)
            steps.append(NoteStep(match.group("role"), path, int(match.group("line"))))
        found.append(WatchNote(head.group("said"), head.group("code"), tuple(steps), advice))
    return found


def without_notes(text: str) -> str:
    """A traceback as torch left it."""
    head = _HEAD.search(text)
    return text[: head.start()] if head is not None else text


def told(
    notes: Sequence[WatchNote], line_text: Callable[[str, int], str], link: Callable[[str, int], str]
) -> list[str]:
    """The notes as Markdown: each line of the trail can be followed."""
    lines = ["## What the watch saw", ""] if notes else []
    for note in notes:
        lines += [f"{sentence_markdown(note.said)} ({note.code})", ""]
        for step in note.steps:
            if step.cell:
                shown = f" {as_code(step.source)}" if step.source else ""
                lines.append(f"- {step.role}: cell {step.cell}, line {step.line}{shown}")
                continue
            name = f"{os.path.basename(step.path)}:{step.line}"
            source = line_text(step.path, step.line).strip()
            shown = f" {as_code(source)}" if source else ""
            lines.append(f"- {step.role}: [{as_markdown(name)}]({link(step.path, step.line)}){shown}")
        lines += ["", *([f"{sentence_markdown(note.advice)}", ""] if note.advice else [])]
    return lines


def _completed(path: str, known: Sequence[str]) -> str:
    if os.path.isabs(path):
        return path
    for each in known:
        if each.endswith(os.sep + path):
            return each
    for each in known:
        if os.path.isabs(each):
            return os.path.join(os.path.dirname(each), path)
    return path
