"""The notes that `gradsight.watch()` leaves on an exception, read back from a traceback that somebody pasted."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gradsight.model.showing import as_code, as_markdown, sentence_markdown
from gradsight.session.fault_text import NEXT

_HEAD = re.compile(
    r"^\s*(?:[|E]\s*)?gradsight: (?P<place>\S.*?): (?:error|warning|info|hint) (?P<code>GS\d+) (?P<said>.+?)\s*$",
    re.MULTILINE,
)
_FILE = re.compile(r"(?P<path>\S.*?):(?P<line>\d+)(?::\d+)?")
_CELL = re.compile(r"cell (?P<cell>\d+)(?:, line |:)(?P<line>\d+)(?::\d+)?")
_TRAIL = re.compile(r"= trail: (?P<trail>.+?)\s*$")
_HELP = re.compile(r"= help: (?P<advice>.+?)\s*$")
_END = re.compile(r"gradsight explain GS\d+\s*$")
_NUMBERED = re.compile(r"^\W*(?P<line>\d+) \| (?P<source>.*?)\s*$")
_IN_CELL = re.compile(r"^\W*\.+ cell (?P<cell>\d+)\s*$")


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
    """The notes in a traceback; paths that are written from a folder are completed by the files that the traceback names.

    One that is there twice is one: under CI pytest repeats the whole message in its summary.
    """
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads), len(text)][1:]
    found = (
        _note(head, text[head.end() : end].split("\n"), known_paths)
        for head, end in zip(heads, ends, strict=True)
    )
    return list(dict.fromkeys(found))


def _note(head: re.Match[str], lines: Sequence[str], known_paths: Sequence[str]) -> WatchNote:
    said: list[tuple[str, str]] = []
    advice = ""
    for line in lines:
        if match := _TRAIL.search(line):
            said = [
                (role, place)
                for role, _, place in (each.partition(" ") for each in match.group("trail").split(NEXT))
            ]
        elif match := _HELP.search(line):
            advice = match.group("advice")
        elif _END.search(line):
            break
    own = _step("here", head.group("place"), known_paths)
    steps = [step for role, place in said if (step := _step(role, place, known_paths)) is not None]
    if own is not None and all(
        (step.path, step.cell, step.line) != (own.path, own.cell, own.line) for step in steps
    ):
        steps.insert(0, own)
    sources = _cell_lines(lines, own.cell if own is not None else 0)
    found = tuple(replace(step, source=sources.get((step.cell, step.line), "")) for step in steps)
    return WatchNote(head.group("said"), head.group("code"), found, advice)


def _step(role: str, place: str, known_paths: Sequence[str]) -> NoteStep | None:
    """A place in the words of a note."""
    if match := _CELL.fullmatch(place):
        return NoteStep(role, "", int(match.group("line")), int(match.group("cell")))
    if match := _FILE.fullmatch(place):
        return NoteStep(role, _completed(match.group("path"), known_paths), int(match.group("line")))
    return None


def _cell_lines(lines: Sequence[str], cell: int) -> dict[tuple[int, int], str]:
    """What stands in the lines of cells that an excerpt shows; no file has them."""
    found: dict[tuple[int, int], str] = {}
    for line in lines:
        if match := _IN_CELL.match(line):
            cell = int(match.group("cell"))
        elif cell and (match := _NUMBERED.match(line)):
            found[cell, int(match.group("line"))] = match.group("source").strip()
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
