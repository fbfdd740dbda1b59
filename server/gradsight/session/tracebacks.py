"""A traceback that somebody pasted: what torch means by its last line, and which lines of the workspace it may be about."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from gradsight.model.finding import Finding
from gradsight.model.showing import as_code, as_markdown, sentence_markdown
from gradsight.model.torch_messages import TorchMessage
from gradsight.session.pages import page_url
from gradsight.session.watch_notes import WatchNote, told, without_notes

_FRAME = re.compile(r'File "(?P<path>[^"\n]+)", line (?P<line>\d+)')
_IPYTHON_FRAME = re.compile(r"^File (?P<path>[^\n:]+\.py):(?P<line>\d+)", re.MULTILINE)
_ERROR = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Warning): ", re.MULTILINE)
MOST_PLACES = 8
NOTHING_FOUND = (
    "None of the files that are open, or that the traceback names, shows the cause by itself. "
    "**GradSight: Run File** runs the program and names the lines."
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one of torch's messages means, in a sentence or two, and the rules that can be behind it, likeliest first."""

    pattern: str
    text: str
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TracebackFrame:
    """One step of a traceback."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Suspect:
    """A finding that would explain the message."""

    finding: Finding
    is_on_traceback: bool


@cache
def meanings() -> tuple[Meaning, ...]:
    """The messages that rules name as theirs; those whose words stand in other messages too come last."""
    from gradsight.rules import ALL

    causes: dict[TorchMessage, list[tuple[int, str]]] = {}
    for rule in ALL:
        for cause in rule.messages:
            causes.setdefault(cause.message, []).append((cause.rank, rule.code))
    return tuple(
        Meaning(message.pattern, message.meaning, tuple(code for _, code in sorted(ranked)))
        for message, ranked in sorted(causes.items(), key=lambda each: each[0].is_vague)
    )


def message_of(text: str) -> str:
    """The last error in a traceback, in one line."""
    text = without_notes(text).strip()
    errors = list(_ERROR.finditer(text))
    said = text[errors[-1].end() :] if errors else text.rpartition("\n")[2]
    return " ".join(said.split())


def frames_of(text: str) -> list[TracebackFrame]:
    """The steps of a traceback, outermost first."""
    found = [*_FRAME.finditer(text), *_IPYTHON_FRAME.finditer(text)]
    found.sort(key=lambda each: each.start())
    return [TracebackFrame(os.path.expanduser(each.group("path")), int(each.group("line"))) for each in found]


def meaning_of(message: str) -> Meaning | None:
    """What torch means; None for a message that is not about autograd."""
    return next((each for each in meanings() if re.search(each.pattern, message)), None)


def suspects(
    meaning: Meaning, frames: Sequence[TracebackFrame], findings: Iterable[Finding]
) -> list[Suspect]:
    """The findings that would explain a message, those whose lines the traceback went through first."""
    places = {(frame.path, frame.line) for frame in frames}
    paths = {frame.path for frame in frames}

    def is_on_traceback(finding: Finding) -> bool:
        own = [(finding.path, finding.span.line), *((step.path, step.span.line) for step in finding.related)]
        return any(place in places for place in own)

    found = [Suspect(each, is_on_traceback(each)) for each in findings if each.code in meaning.codes]
    found.sort(
        key=lambda each: (
            not each.is_on_traceback,
            each.finding.path not in paths,
            meaning.codes.index(each.finding.code),
            each.finding.path,
            each.finding.span.line,
        )
    )
    return found[:MOST_PLACES]


def explanation(
    message: str,
    found: Sequence[Suspect],
    line_text: Callable[[str, int], str],
    link: Callable[[str, int], str],
    notes: Sequence[WatchNote] = (),
) -> str:
    """The whole answer as Markdown; what a watch saw in the program itself comes before what may be the cause."""
    meaning = meaning_of(message)
    lines = ["# Explanation", "", f"> {as_markdown(message)}" if message else "> (nothing was pasted)", ""]
    lines += told(notes, line_text, link)
    if meaning is None and notes:
        return "\n".join([*lines, "## More", "", *(f"- {_page(note.code)}" for note in notes)]) + "\n"
    if meaning is None:
        lines += [
            "This is none of the messages that autograd raises, so GradSight has nothing to add to it.",
            "",
            "Paste the whole traceback, or its last line.",
        ]
        return "\n".join(lines) + "\n"
    lines += [meaning.text, ""]
    if found and not notes:
        lines += ["## Likely lines", ""]
        for number, suspect in enumerate(found, 1):
            lines += _told(number, suspect, line_text, link)
    elif not notes:
        lines += [
            "## Likely lines",
            "",
            NOTHING_FOUND,
            "",
        ]
    lines += ["## More", "", *(f"- {_page(code)}" for code in meaning.codes)]
    return "\n".join(lines) + "\n"


def _told(
    number: int, suspect: Suspect, line_text: Callable[[str, int], str], link: Callable[[str, int], str]
) -> list[str]:
    finding = suspect.finding
    path, line = finding.path, finding.span.line
    name = f"{os.path.basename(path)}:{line}"
    certain = "; the traceback passed through it" if suspect.is_on_traceback else ""
    lines = [
        f"{number}. [{as_markdown(name)}]({link(path, line)}) {as_code(line_text(path, line).strip())}  "
    ]
    lines += [f"   {sentence_markdown(finding.message)} ({finding.code}){certain}"]
    for step in finding.related:
        if step.role != "call":
            where = f"{os.path.basename(step.path)}:{step.span.line}"
            lines.append(
                f"   - [{as_markdown(where)}]({link(step.path, step.span.line)}) {sentence_markdown(step.message)}"
            )
    return [*lines, ""]


def _page(code: str) -> str:
    from gradsight.rules import find

    rule = find(code)
    return f"[{code} {rule.name}]({page_url(rule.name)}): {rule.summary}" if rule is not None else code
