"""What came of a run, for the person who asked for it: one sentence that adds up, and a page with everything."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradsight.model.finding import Finding
from gradsight.model.showing import as_markdown, sentence_markdown

WORDS = {
    "confirmed": "confirmed",
    "refuted": "refuted",
    "not-reached": "not reached",
    "undecided": "cannot be judged by running",
}
WHY = {
    "confirmed": "torch did what was predicted",
    "refuted": "it ran, and the gradient was right",
    "not-reached": "the run did not get there",
    "undecided": "a run like this shows no difference",
}
MOST_OUTPUT = 4000
LONGEST_ERROR = 300
Naming = Callable[[str, int], str]
"""How a line of a file is spoken of: `line 7`, or in a notebook `cell 3, line 2`."""


def by_number(_path: str, line: int) -> str:
    """A line of a file that is no notebook."""
    return f"line {line}"


@dataclass(frozen=True, slots=True)
class Ran:
    """What was run, and how."""

    python: str
    what: str
    arguments: tuple[str, ...] = ()
    directory: str = ""
    launcher: tuple[str, ...] = ()
    program: str = ""
    """The program itself, where it was made for the run; empty where it is the user's file."""

    @property
    def command(self) -> str:
        """As a shell would be given it."""
        return shlex.join([*self.launcher, self.python, self.what, *self.arguments])


def sentence(
    document: Mapping[str, Any],
    asked: Sequence[Finding],
    judged: Sequence[Finding],
    line_name: Naming = by_number,
) -> str:
    """`2 confirmed · 2 not reached: stopped at line 123 · 2 cannot be judged by running`."""
    verdicts = [verdict_of(each) for each in judged]
    stop = stopped(document, line_name)
    parts = []
    for verdict, word in WORDS.items():
        count = verdicts.count(verdict)
        if count:
            reason = f": {stop}" if verdict == "not-reached" and stop else ""
            parts.append(f"{word if len(asked) == 1 else f'{count} {word}'}{reason}")
    beyond = len(document["faults"]) - verdicts.count("confirmed")
    if beyond > 0:
        parts.append(f"{beyond} {'more ' if parts else ''}fault{'' if beyond == 1 else 's'} seen")
    if not parts:
        parts.append("no fault seen")
    error = document["error"]
    ending = {
        "timeout": "the time limit was reached",
        "died": f"the program died: {error['message']}" if error else "the program died",
        "raised": f"the program raised {error['type']}" if error and not document["faults"] else "",
    }.get(document["outcome"], "")
    subject = f"{asked[0].code} " if len(asked) == 1 else ""
    return subject + " · ".join([*parts, ending] if ending else parts)


def page(
    document: Mapping[str, Any],
    judged: Sequence[Finding],
    summary: str,
    ran: Ran,
    output: str,
    line_name: Naming = by_number,
    link: Naming = lambda _path, _line: "",
) -> str:
    """The run in Markdown: each finding with its verdict, how it was run, and what the program printed."""
    lines = ["# Last run", "", sentence_markdown(summary.removeprefix("GradSight: ")), ""]
    if judged:
        lines += ["| where | finding | verdict | why |", "| --- | --- | --- | --- |"]
        for each, verdict, why in _verdicts(judged):
            place, address = line_name(each.path, each.span.line), link(each.path, each.span.line)
            where = f"[{place}]({address})" if address else place
            lines.append(f"| {where} | {each.code} {each.name} | {verdict} | {as_markdown(why)} |")
        lines.append("")
    for name, text in _circumstances(document, ran, line_name):
        is_code = name in ("command", "folder", "interpreter")
        shown = f"`{text}`" if is_code else as_markdown(text) if name == "ended" else text
        lines.append(f"- {name}: {shown}")
    if output.strip():
        lines += ["", "## The program printed", "", *_fenced("text", output[-MOST_OUTPUT:])]
    if ran.program:
        lines += ["", "## The program that was run", "", *_fenced("python", ran.program)]
    return "\n".join(lines) + "\n"


def log_entry(
    document: Mapping[str, Any],
    judged: Sequence[Finding],
    summary: str,
    ran: Ran,
    output: str,
    line_name: Naming = by_number,
) -> str:
    """The same as plain lines, for a log."""
    lines = [summary.removeprefix("GradSight: ")]
    lines += [f"  {name}: {text}" for name, text in _circumstances(document, ran, line_name)]
    lines += [
        f"  {line_name(each.path, each.span.line)}: {each.code} {verdict} ({why})"
        for each, verdict, why in _verdicts(judged)
    ]
    if output.strip():
        lines += [
            "  the program printed:",
            *(f"    {row}" for row in output[-MOST_OUTPUT:].rstrip().split("\n")),
        ]
    return "\n".join(lines)


def _circumstances(document: Mapping[str, Any], ran: Ran, line_name: Naming) -> Iterator[tuple[str, str]]:
    """How it was run, and how that ended."""
    seconds = document["seconds"]
    yield ("ran", ran.what) if ran.program else ("command", ran.command)
    if ran.directory:
        yield "folder", ran.directory
    yield "interpreter", ran.python
    yield "Python", str(document["python"] or "not known")
    yield "torch", str(document["torch"] or "not known")
    yield "time", f"{seconds:.1f} s" if seconds is not None else "not known"
    yield "ended", ended(document, line_name)


def _verdicts(judged: Sequence[Finding]) -> Iterator[tuple[Finding, str, str]]:
    """Each finding with its verdict and the reason for it, in the order of lines."""
    for each in sorted(judged, key=lambda each: each.span.line):
        verdict = verdict_of(each)
        yield each, WORDS.get(verdict, verdict), str(each.data.get("why") or "") or WHY.get(verdict, "")


def _fenced(language: str, text: str) -> list[str]:
    return [f"```{language}", text.rstrip().replace("```", "` ` `"), "```"]


def verdict_of(finding: Finding) -> str:
    """What a run said about a finding; a rule that no run can judge has nothing said about it."""
    verdict = str(finding.data.get("verdict") or "undecided")
    return verdict if verdict in WORDS else "confirmed" if verdict == "seen" else "undecided"


def stopped(document: Mapping[str, Any], line_name: Naming = by_number) -> str:
    """Where the program stopped by itself before its end; empty if it did not."""
    location = (document["error"] or {}).get("location") or {}
    row, path = location.get("row"), str(location.get("filename") or "")
    return f"stopped at {line_name(path, row)}" if row else ""


def ended(document: Mapping[str, Any], line_name: Naming = by_number) -> str:
    """How the run came to its end."""
    error = document["error"]
    words = {
        "clean": "normally", "faults": "normally, faults were seen", "timeout": "at the time limit", "died": "the process died",
        "could-not-run": "it could not be started",
    }  # fmt: skip
    if error:
        what = str(error["message"]).split("\n")[0].split(" Hint:")[0]
        what = what if len(what) <= LONGEST_ERROR else f"{what[:LONGEST_ERROR].rpartition(' ')[0]}…"
        return f"{stopped(document, line_name) or 'stopped'}: {error['type']}: {what}"
    return words.get(document["outcome"], str(document["outcome"]))
