"""What a run leaves behind beside its faults, and the questions that a rule can ask of it.

*Sighted* is what a rule predicts and the agent saw without making a fault of it.  *Memories* are the lines that read and
wrote one storage, with their times.  The *books* are those of the training loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gradsight.model.finding import Finding

At = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Touch:
    """A line that touched a storage, the first and the last time."""

    path: str
    line: int
    wrote: bool
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The backwards of one line that came through."""

    needed: frozenset[At]
    made: Mapping[At, Mapping[str, tuple[int, int]]]
    """The lines that made nodes of their graphs, with the operators and their first and last time."""
    first: int
    last: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Proof:
    """What of a run speaks for or against a refutation."""

    finished: tuple[Finished, ...] = ()
    writes: Mapping[At, tuple[int, int]] | None = None
    """The lines that wrote, with the first and the last time."""
    failed: tuple[At, ...] = ()
    """The lines on which torch raised an error that the program caught."""
    written_memory: tuple[tuple[frozenset[At], frozenset[At]], ...] = ()
    """For each storage that was written: the lines that wrote it, and all that made, read or wrote it."""


NO_PROOF = Proof()


@dataclass(frozen=True, slots=True)
class RunTraces:
    """The traces of one run."""

    sighted: frozenset[tuple[str, str, int]] = frozenset()
    """What was seen where: the code of a rule, the path and the line."""
    memories: tuple[tuple[Touch, ...], ...] = ()
    parameters: tuple[Mapping[str, Any], ...] = ()
    optimizers: tuple[tuple[int, int], ...] = ()
    """Steps of each optimizer, and how many of them found a gradient."""
    cuts_in_loss: bool = True
    backwards: int = 0
    proof: Proof = NO_PROOF

    def is_all_trained(self) -> bool:
        """Every parameter that any loss depends on has got a gradient."""
        return bool(self.parameters) and all(row["grad"] == "ok" for row in self.parameters)

    def has_no_cut(self) -> bool:
        """Every parameter has got its gradient, and nothing in any loss is cut off."""
        return self.is_all_trained() and not self.cuts_in_loss

    def is_all_in_optimizers(self) -> bool:
        """Every parameter has got a gradient, and an optimizer moves it."""
        return self.is_all_trained() and all(row.get("in_optimizer") for row in self.parameters)

    def has_only_useful_steps(self) -> bool:
        """Every step of every optimizer found a gradient."""
        return bool(self.optimizers) and all(steps and steps == useful for steps, useful in self.optimizers)

    def is_read_after_write(self, finding: Finding) -> bool:
        """The very memory that was made here is written there, and read after that."""
        own = {(finding.path, finding.span.line)}
        written = _places(finding, "written") or own
        read = _places(finding, "read")
        made = _places(finding, "made") or own
        for memory in self.memories:
            wrote = [each for each in memory if each.wrote and (each.path, each.line) in written]
            if not wrote:
                continue
            since = min(each.first for each in wrote)
            touched = {(each.path, each.line) for each in memory}
            is_read = any(
                (each.path, each.line) in read and each.last > since for each in memory if not each.wrote
            )
            if is_read and (made & touched or not self._touches_anything(made)):
                return True
        return False

    def is_never_overwritten(self, finding: Finding) -> bool:
        """What was taken on this line is not written to after that."""
        taken = False
        for memory in self.memories:
            times = [
                each.first
                for each in memory
                if not each.wrote and (each.path, each.line) == (finding.path, finding.span.line)
            ]
            if times:
                taken = True
                if any(each.wrote and each.last > min(times) for each in memory):
                    return False
        return taken

    def was_written(self, finding: Finding) -> bool:
        """The write of a finding took place, so that the audit of every backward had it before its eyes."""
        places = _places(finding, "written") | {(finding.path, finding.span.line)}
        return any(
            each.wrote and (each.path, each.line) in places for memory in self.memories for each in memory
        )

    def _touches_anything(self, places: set[tuple[str, int]]) -> bool:
        return any((each.path, each.line) in places for memory in self.memories for each in memory)


def _places(finding: Finding, role: str) -> set[tuple[str, int]]:
    return {(step.path, step.span.line) for step in finding.related if step.role == role}
