"""What came of a run, for the person who asked for it: one sentence that adds up, and a page with everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def sentence(document: Mapping[str, Any], asked: Sequence[Finding], judged: Sequence[Finding]) -> str:
    """`2 confirmed · 2 not reached: stopped at line 123 · 2 cannot be judged by running`."""
    verdicts = [verdict_of(each) for each in judged]
    stop = stopped(document)
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
    document: Mapping[str, Any], judged: Sequence[Finding], summary: str, python: str, output: str
) -> str:
    """The run in Markdown: how it was run, each finding with its verdict, and what the program printed."""
    lines = ["# Last run", "", sentence_markdown(summary), ""]
    seconds = document["seconds"]
    told = [
        ("interpreter", f"`{python}`"),
        ("Python", str(document["python"] or "not known")),
        ("torch", str(document["torch"] or "not known")),
        ("time", f"{seconds:.1f} s" if seconds is not None else "not known"),
        ("ended", ended(document)),
    ]
    lines += [f"- {name}: {text}" for name, text in told]
    if judged:
        lines += ["", "| line | rule | verdict | why |", "| --- | --- | --- | --- |"]
        for each in sorted(judged, key=lambda each: each.span.line):
            verdict = verdict_of(each)
            why = str(each.data.get("why") or "") or WHY.get(verdict, "")
            rule = f"{each.code} {each.name}"
            lines.append(
                f"| {each.span.line} | {rule} | {WORDS.get(verdict, verdict)} | {as_markdown(why)} |"
            )
    if output.strip():
        lines += [
            "",
            "## The program printed",
            "",
            "```text",
            output[-MOST_OUTPUT:].rstrip().replace("```", "` ` `"),
            "```",
        ]
    return "\n".join(lines) + "\n"


def verdict_of(finding: Finding) -> str:
    """What a run said about a finding; a rule that no run can judge has nothing said about it."""
    verdict = str(finding.data.get("verdict") or "undecided")
    return verdict if verdict in WORDS else "confirmed" if verdict == "seen" else "undecided"


def stopped(document: Mapping[str, Any]) -> str:
    """Where the program stopped by itself before its end; empty if it did not."""
    error = document["error"] or {}
    row = (error.get("location") or {}).get("row")
    return f"stopped at line {row}" if row else ""


def ended(document: Mapping[str, Any]) -> str:
    error = document["error"]
    words = {
        "clean": "normally", "faults": "normally, faults were seen", "timeout": "at the time limit", "died": "the process died",
        "could-not-run": "it could not be started",
    }  # fmt: skip
    if error:
        return f"{stopped(document) or 'stopped'}: {error['type']}: {as_markdown(str(error['message']).split(chr(10))[0][:200])}"
    return words.get(document["outcome"], str(document["outcome"]))
