"""A rule: which events it judges, the page that explains it, and everything else that is true of this rule alone.

A rule's module docstring is its manual page, the hover text and its test suite; see CONTRIBUTING.md.
What another package wants to know about rules it asks of these fields: no rule is named outside `rules`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from gradsight.model.events import PARAMETERS_OF, Event
from gradsight.model.finding import Certainty, Finding, Related, Role, Severity

if TYPE_CHECKING:
    from gradsight.model.run_traces import RunTraces
    from gradsight.model.torch_messages import Cause

Judgement = Callable[[Event], Finding | None]
FixBuilder = Callable[[Any], Iterator[Any]]
"""From a `Case` to its `Draft`s; both are nouns of the package `fixes`, which stands above this one."""
Witness = Callable[["RunTraces", Finding], bool]
"""Whether the traces of a run say something about a finding."""
SameCause = Callable[[Finding, Finding], bool | None]
"""Whether a fault on another line is the one that a finding predicts; None leaves it to the trails of both."""
LONGEST_NAME = 32
LONGEST_MESSAGE = 140
SHORTEST_CUT = 12
TRAINING_CONTEXTS = ("forward", "loss", "evidence")


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One rule.  `judge` turns an event of one of `kinds` into a finding, or keeps silent."""

    code: str
    name: str
    kinds: tuple[str, ...]
    judge: Judgement
    page: str
    advice: str = ""
    """What to do about it, in one line."""
    fix: FixBuilder | None = None
    companions: tuple[Role, ...] = ("made", "saved")
    """Findings of this rule that share one of these places have one cause, and are fixed together."""
    silences: tuple[str, ...] = ()
    """Codes of rules that keep quiet on a line where this one speaks."""
    silences_callers: tuple[str, ...] = ()
    """Codes of rules that keep quiet on the lines through which a finding of this rule was reached."""
    is_uncalled: bool = False
    """The finding is that its own line never runs: a run that does not come there bears it out."""
    says_harmless: bool = False
    """A finding says that a write does no harm: a run that agrees confirms it, one that does not makes it vanish."""
    is_bad_write: bool = False
    """The fault is a write, so it contradicts whoever calls that write harmless."""
    spoils_saved: bool = False
    """A write destroys what backward needs: a run with a copy of every saved tensor has the right gradients."""
    is_drawable: bool = False
    """The graph of a run shows the fault: who kept a value, who overwrote it, and who needs it."""
    torch_raises: bool = False
    """Torch raises an error by itself, so that a run without it refutes the finding."""
    stands_on: Literal["", "write", "backward"] = ""
    """Where a finding that speaks of a wrong or refused value stands: a run refutes it only by values that went right."""
    messages: tuple[Cause, ...] = ()
    """What torch says where this rule can be the cause."""
    observed_as: tuple[str, ...] = ()
    """Kinds of what an agent observes in a run, that are this fault."""
    kin: str = ""
    """Rules with the same word here tell one fault in different words: seen on one line, either is the other."""
    same_cause: SameCause | None = None
    shown_by: Witness | None = None
    """Whether a run shows the fault without having observed it as one."""
    excluded_by: Witness | None = None
    """Whether a run with a backward that came through every place of a finding shows that it is wrong."""
    needs_whole_run: bool = False
    """Only a run that came through shows the fault; the traces of one that raised do not."""
    needs_training: bool = False
    """Only a step of an optimizer shows the fault, so a made-up call trains for some steps."""

    @property
    def summary(self) -> str:
        """The first line of the page."""
        return self.page.strip().partition("\n")[0]


CLAIMED_AT = "granted_at"
"""A name by which the paths of an entry compare places; lines of it are those of the text that was executed."""


def text(event: Event, name: str, default: str = "it") -> str:
    """A name the event speaks of, as a string fit for a sentence."""
    value = event.names.get(name)
    # `<parameters>` is what stands for all of an unknown module, and no name of the program's.
    is_made_up = isinstance(value, str) and value.startswith("<") and value.endswith(">")
    return str(value) if value not in (None, "", False) and not is_made_up else default


_PHRASE = re.compile(r"(the|a|an) (?!(?:if|is|in|and|or|not|for)\b)[a-z]")
"""`the loss` is one of ours, `a + b` and `a if b else c` are the program's."""


def named(event: Event, name: str, default: str = "it") -> str:
    """A piece of the user's code that the event speaks of, quoted for a sentence; a plain phrase where there is none."""
    value = text(event, name, default)
    return value if value == default else quoted(value)


def operator_named(event: Event) -> str:
    """The operator at the event's place as the user wrote it: `x > 0` for a symbol, its name for a call."""
    return named(event, "symbol" if event.names.get("symbol") else "op")


def quoted(code: str) -> str:
    """Code in backticks, cut where it is too long to be taken in at once; a phrase of ours stays as it is.

    The parameters of a module that is not known are spoken of as the module: `self.policy` learns nothing.
    """
    if _PHRASE.match(code):
        return code
    code = code.removesuffix(PARAMETERS_OF)
    return f"`{code if len(code) <= LONGEST_NAME else code[: LONGEST_NAME - 1].rstrip('.') + '…'}`"


def fitting(message: str) -> str:
    """A message of one line: where it is too long, the longest pieces of the user's code in it are cut."""
    while len(message) > LONGEST_MESSAGE:
        longest = max(re.findall(r"`[^`]*`", message), key=len, default="")
        if len(longest) <= SHORTEST_CUT:
            break
        kept = max(len(longest) - 3 - (len(message) - LONGEST_MESSAGE), SHORTEST_CUT - 3)
        message = message.replace(longest, f"`{longest[1 : kept + 1]}…`", 1)
    return message


def gradient_name(event: Event) -> str:
    """`weight.grad`, or a phrase for the gradient of what has no name."""
    target = text(event, "target", "")
    is_named = target and not target.startswith("the ") and not target.endswith(PARAMETERS_OF)
    return quoted(f"{target}.grad") if is_named else "this gradient"


def cut_name(event: Event) -> str:
    """What takes a tensor out of the graph, as it is written: `detach()`, `.data`."""
    op = text(event, "op")
    return {"data": "`.data`", "detach": "`detach()`"}.get(op) or quoted(op)


def make_finding(event: Event, code: str, name: str, message: str, severity: Severity) -> Finding:
    """A finding at the event's place.

    `severity` is what a certain event on one plain path deserves.  An event that rests on an assumption is a warning in
    training code and where the program itself gives evidence for it, and information elsewhere; one that needs several independent branches is information at most.
    """
    certainty: Certainty = "assumed" if event.assumption else "certain"
    if certainty == "assumed":
        if severity in ("error", "warning"):
            severity = "warning" if event.context in TRAINING_CONTEXTS else "info"
    if event.alternatives >= 1 and severity in ("error", "warning"):
        severity = "info"
    related = tuple(
        Related(step.role, step.message, step.place.path, step.place.span()) for step in event.steps
    )
    if event.assumption:
        related += (Related("assumed", f"assumed: {event.assumption}", event.place.path, event.place.span()),)
    return Finding(
        code, name, fitting(message), severity, certainty, event.place.path, event.place.span(), related, event.assumption,
        {
            key: value
            for key, value in event.names.items()
            if isinstance(value, (str, int, bool)) and key != CLAIMED_AT
        },
    )  # fmt: skip
