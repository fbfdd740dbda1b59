"""A traceback that somebody pasted: what torch means by its last line, and which lines of the workspace it may be about."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gradsight.model.finding import Finding
from gradsight.model.showing import as_code, as_markdown
from gradsight.session.pages import page_url

_FRAME = re.compile(r'File "(?P<path>[^"\n]+)", line (?P<line>\d+)')
_IPYTHON_FRAME = re.compile(r"^File (?P<path>[^\n:]+\.py):(?P<line>\d+)", re.MULTILINE)
_ERROR = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Warning): ", re.MULTILINE)
MOST_PLACES = 8
NOTHING_FOUND = (
    "None of the files that are open, or that the traceback names, shows the cause by itself. "
    "**GradSight: Probe File** runs the program and names the lines."
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one of torch's messages means, in a sentence or two, and the rules that can be behind it, likeliest first."""

    pattern: str
    text: str
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """One step of a traceback."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Suspect:
    """A finding that would explain the message."""

    finding: Finding
    is_on_traceback: bool


MEANINGS = (
    Meaning(
        r"modified by an inplace operation",
        "Backward needs a value that an operator kept during the forward pass, and something has overwritten it since. "
        "The line in the traceback is the backward; the culprit is the write, which torch does not name.",
        ("GS101", "GS106", "GS104", "GS703"),
    ),
    Meaning(
        r"leaf Variable that requires grad",
        "A leaf that requires grad, a parameter for example, was written in place while autograd was recording. "
        "Its gradient would have to be about the value before and after the write.",
        ("GS102",),
    ),
    Meaning(
        r"is a view and (?:its base or another view|is being modified)|returns multiple views|created in no_grad mode",
        "The tensor is one of several views of one memory, and autograd cannot record a write to it.",
        ("GS103",),
    ),
    Meaning(
        r"single memory location",
        "Several elements of the tensor are one place in memory, after `expand` for example, so a write has no one meaning.",
        ("GS103",),
    ),
    Meaning(
        r"implicitly created only for scalar outputs",
        "`backward()` was called on a tensor with more than one element. Reduce it to a loss first, or pass `gradient=`.",
        ("GS401",),
    ),
    Meaning(
        r"backward through the graph a second time",
        "The values that this backward needs were freed by an earlier one. Either the same loss is used twice, or a tensor "
        "that is carried from one iteration to the next still holds the old graph.",
        ("GS402", "GS403"),
    ),
    Meaning(
        r"does not require grad and does not have a grad_fn",
        "Nothing on the way to this loss is recorded: the path was cut before, by a detach, a copy, a number or a mode.",
        ("GS203", "GS201", "GS202", "GS204", "GS205", "GS206", "GS210", "GS207"),
    ),
    Meaning(
        r"can't optimize a non-leaf Tensor",
        "The optimizer was given the result of an operation, such as `.to(...)` or `* 0.1`, instead of the leaf itself.",
        ("GS303",),
    ),
    Meaning(
        r"appears? to not have been used in the graph|One of the differentiated Tensors",
        "A gradient was asked for with respect to a tensor that the output does not depend on.",
        ("GS406", "GS405"),
    ),
    Meaning(
        r"Only Tensors created explicitly by the user",
        "A tensor that is part of a graph cannot be deep-copied; copy a leaf, or a detached clone.",
        ("GS306",),
    ),
    Meaning(
        r"returned an incorrect number of gradients|returned an invalid gradient",
        "A custom function's `backward` must return one gradient for each argument of its `forward`.",
        ("GS701",),
    ),
    Meaning(
        r"[Ii]nference tensors? ",
        "A tensor made under `inference_mode` can never take part in a graph; make it outside, or clone it.",
        ("GS204",),
    ),
    Meaning(
        r"before (?:Module|Parameter)\.__init__",
        "`super().__init__()` has to come before the first module or parameter is assigned.",
        ("GS603",),
    ),
    Meaning(
        r"numpy\(\) on Tensor that requires grad",
        "NumPy knows nothing of graphs: detach the tensor first, and only where its value is not part of the loss.",
        ("GS202",),
    ),
    Meaning(
        r"don't support automatic differentiation, but one of the arguments requires grad",
        "`out=` writes into a given tensor, which autograd does not record.",
        ("GS108",),
    ),
    Meaning(
        r"None of the inputs have requires_grad=True",
        "A reentrant checkpoint cuts the graph when none of its inputs requires grad.",
        ("GS211",),
    ),
    Meaning(
        r"\.grad attribute of a Tensor that is not a leaf",
        "Only leaves keep their gradient; call `retain_grad()` on the tensor before the backward.",
        ("GS301",),
    ),
    Meaning(
        r"'NoneType' object has no attribute|NoneType",
        "A `.grad` was used while it was None: no backward has reached this tensor.",
        ("GS304", "GS301"),
    ),
)


def message_of(text: str) -> str:
    """The last error in a traceback, in one line."""
    text = text.strip()
    errors = list(_ERROR.finditer(text))
    said = text[errors[-1].end() :] if errors else text.rpartition("\n")[2]
    return " ".join(said.split())


def frames_of(text: str) -> list[Frame]:
    """The steps of a traceback, outermost first."""
    found = [*_FRAME.finditer(text), *_IPYTHON_FRAME.finditer(text)]
    found.sort(key=lambda each: each.start())
    return [Frame(os.path.expanduser(each.group("path")), int(each.group("line"))) for each in found]


def meaning_of(message: str) -> Meaning | None:
    """What torch means; None for a message that is not about autograd."""
    return next((each for each in MEANINGS if re.search(each.pattern, message)), None)


def suspects(meaning: Meaning, frames: Sequence[Frame], findings: Iterable[Finding]) -> list[Suspect]:
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
) -> str:
    """The whole answer as Markdown."""
    meaning = meaning_of(message)
    lines = ["# Explanation", "", f"> {as_markdown(message)}" if message else "> (nothing was pasted)", ""]
    if meaning is None:
        lines += [
            "This is none of the messages that autograd raises, so GradSight has nothing to add to it.",
            "",
            "Paste the whole traceback, or its last line.",
        ]
        return "\n".join(lines) + "\n"
    lines += [meaning.text, ""]
    if found:
        lines += ["## Likely lines", ""]
        for number, suspect in enumerate(found, 1):
            lines += _told(number, suspect, line_text, link)
    else:
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
    certain = ", and the traceback passed through it" if suspect.is_on_traceback else ""
    lines = [
        f"{number}. [{as_markdown(name)}]({link(path, line)}) {as_code(line_text(path, line).strip())}  "
    ]
    lines += [f"   {as_markdown(finding.message)}{certain} ({finding.code})"]
    for step in finding.related:
        if step.role != "call":
            where = f"{os.path.basename(step.path)}:{step.span.line}"
            lines.append(
                f"   - [{as_markdown(where)}]({link(step.path, step.span.line)}) {as_markdown(step.message)}"
            )
    return [*lines, ""]


def _page(code: str) -> str:
    from gradsight.rules import find

    rule = find(code)
    return f"[{code} {rule.name}]({page_url(rule.name)}): {rule.summary}" if rule is not None else code
