"""What a watch has to say at its end: parameters that are not trained, errors, and what could not be seen."""

from __future__ import annotations

import html
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradsight.agent.faults import Fault
from gradsight.agent.parameter_books import OptimizerBook, ParameterRecord, listed
from gradsight.agent.sites import place_of
from gradsight.live.words import HEAD, lines_of, notes_of, place_text, rule_words

if TYPE_CHECKING:
    from gradsight.agent.missed_leaves import TensorRef


@dataclass(frozen=True)
class ReportLine:
    """What is said of some parameters, with the place it speaks of."""

    names: tuple[str, ...]
    sentence: str
    place: str = ""

    def __str__(self) -> str:
        text = f"{listed(list(self.names))}: {self.sentence}"
        return f"{text} ({self.place})" if self.place else text


@dataclass(frozen=True)
class WatchReport:
    """What was seen between the start of a watch and now."""

    errors: tuple[Fault, ...]
    cuts: tuple[Fault, ...]
    """Why parameters have no gradient, where that is known."""
    kept_graphs: tuple[Fault, ...]
    parameters: tuple[ReportLine, ...]
    """The other parameters that are not trained."""
    remarks: tuple[str, ...]
    steps: int

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Everything that has a trail."""
        return (*self.errors, *self.cuts, *self.kept_graphs)

    @property
    def untrained(self) -> list[str]:
        """What is said of parameters that are not trained."""
        cuts = ["\n".join(notes_of(fault)).removeprefix(HEAD) for fault in self.cuts]
        return cuts + [str(line) for line in self.parameters]

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to complain about."""
        return not self.faults and not self.parameters

    def fault_blocks(self) -> list[str]:
        """Each of them as a note on an error has it."""
        return ["\n".join(notes_of(fault)) for fault in self.faults]

    def blocks(self) -> list[str]:
        """Each problem with its trail."""
        return self.fault_blocks() + [str(line) for line in self.parameters]

    def __str__(self) -> str:
        lines = self.blocks()
        lines += [f"note: {remark}" for remark in self.remarks]
        steps = f"{self.steps} optimizer step{'s' if self.steps != 1 else ''} watched"
        problems = len(self.faults) + len(self.parameters)
        end = "no fault seen" if not problems else f"{problems} problem{'s' if problems != 1 else ''}"
        return "\n".join([*lines, f"gradsight: {end}, {steps}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            f"<li><b>{html.escape(rule_words(fault.kind)[0])}</b> {html.escape(fault.message)} "
            f"<code>{html.escape(lines_of(fault)[0].place)}</code></li>"
            for fault in self.faults
        ]
        rows += [f"<li>{html.escape(str(line))}</li>" for line in self.parameters]
        rows += [f"<li><i>{html.escape(remark)}</i></li>" for remark in self.remarks]
        end = html.escape(str(self).splitlines()[-1])
        return f"<div><ul>{''.join(rows)}</ul><div>{end}</div></div>"


def untrained(books: list[OptimizerBook]) -> list[tuple[str, TensorRef]]:
    """The parameters that no step found a gradient in, by name."""
    records = [record for book in books for record in book.records.values()]
    return [(record.name, record.tensor) for record in records if record.steps and not record.with_gradient]


def parameter_lines(books: list[OptimizerBook], explained: Set[int]) -> Iterator[ReportLine]:
    """What the books of the optimizers say of parameters that are not trained, but for those that are explained already."""
    for book in books:
        place = place_text(place_of(book.stack[0])) if book.stack else ""
        asked = [record for record in book.records.values() if record.steps]
        without = [
            record for record in asked if not record.with_gradient and id(record.tensor) not in explained
        ]
        zero = [
            record for record in asked if record.with_gradient and record.measured and not record.not_zero
        ]
        still = [
            record for record in asked if not record.has_moved and record.with_gradient and record not in zero
        ]
        yield from _said(without, place, "no gradient in any of {} steps")
        yield from _said(zero, place, "the gradient was zero in all of {} steps")
        yield from _said(still, place, f"has a gradient, and `{book.kind}` did not move it in {{}} steps")


def _said(records: list[ParameterRecord], place: str, sentence: str) -> Iterator[ReportLine]:
    if records:
        steps = max(record.steps for record in records)
        yield ReportLine(tuple(record.name for record in records), sentence.format(steps), place)
