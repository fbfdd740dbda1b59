"""What a run leaves behind beside its faults, and what that says about a prediction nobody raised an error for.

*Sighted* is what a rule predicts and the agent saw without making a fault of it.  *Memories* are the lines that read and
wrote one storage, with their times.  The *books* are those of the training loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gradsight.model.finding import Finding
from gradsight.session.refutation import NO_PROOF, Proof, proof_of

# Rules that say that a path to the loss is cut.
CUTS = frozenset("GS201 GS202 GS203 GS204 GS205 GS206 GS207".split())
# Rules that say that parameters with a gradient are not trained.
_UNTRAINED = frozenset("GS504 GS601 GS604".split())


@dataclass(frozen=True, slots=True)
class Touch:
    """A line that touched a storage, the first and the last time."""

    path: str
    line: int
    wrote: bool
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Traces:
    """The traces of one run."""

    sighted: frozenset[tuple[str, str, int]] = frozenset()
    memories: tuple[tuple[Touch, ...], ...] = ()
    parameters: tuple[Mapping[str, Any], ...] = ()
    optimizers: tuple[tuple[int, int], ...] = ()
    """Steps of each optimizer, and how many of them found a gradient."""
    cuts_in_loss: bool = True
    backwards: int = 0
    proof: Proof = NO_PROOF

    def shows(self, finding: Finding) -> bool:
        """Whether the run saw what a finding says, though it made no fault of it."""
        codes = CUTS if finding.code in CUTS else {finding.code}
        rows = range(finding.span.line, finding.span.end_line + 1)
        if any((code, finding.path, row) in self.sighted for code in codes for row in rows):
            return True
        return finding.code == "GS107" and self._is_read_after_write(finding)

    def excludes(self, finding: Finding) -> bool:
        """Whether the run, which came through every place of a finding, shows that what it says did not happen."""
        if not self.backwards:
            return False
        code = finding.code
        if code in CUTS:
            return self._all_trained() and not self.cuts_in_loss
        if code == "GS208":
            return self._all_trained() and all((row.get("norm") or 0) > 0 for row in self.parameters)
        if code in _UNTRAINED:
            return self._all_trained() and all(row.get("in_optimizer") for row in self.parameters)
        if code in ("GS502", "GS503"):
            return bool(self.optimizers) and all(
                steps and steps == useful for steps, useful in self.optimizers
            )
        if code == "GS501":
            return bool(self.optimizers) and all(useful > 1 for _, useful in self.optimizers)
        if code == "GS302":
            return self._is_never_overwritten(finding)
        return code == "GS104" and self._was_written(finding)

    def _all_trained(self) -> bool:
        """Every parameter that any loss depends on has got a gradient."""
        return bool(self.parameters) and all(row["grad"] == "ok" for row in self.parameters)

    def _is_read_after_write(self, finding: Finding) -> bool:
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

    def _touches_anything(self, places: set[tuple[str, int]]) -> bool:
        return any((each.path, each.line) in places for memory in self.memories for each in memory)

    def _is_never_overwritten(self, finding: Finding) -> bool:
        """The gradient that was taken on this line is not written to after that."""
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

    def _was_written(self, finding: Finding) -> bool:
        """The write of a finding took place, so that the audit of every backward had it before its eyes."""
        places = _places(finding, "written") | {(finding.path, finding.span.line)}
        return any(
            each.wrote and (each.path, each.line) in places for memory in self.memories for each in memory
        )


def traces_of(report: Mapping[str, Any]) -> Traces:
    """The traces in the report of an agent."""
    books = report.get("training") or {}
    return Traces(
        frozenset((str(code), str(path), int(row)) for code, path, row in report.get("sighted") or ()),
        tuple(tuple(_touches(memory)) for memory in report.get("touches") or ()),
        tuple(report.get("parameters") or ()),
        tuple((int(steps), int(useful)) for steps, useful in books.get("optimizers") or ()),
        bool(books.get("cuts_in_loss", True)),
        int(report.get("backwards") or 0),
        proof_of(report),
    )


def _touches(memory: Iterable[Mapping[str, Any]]) -> Iterable[Touch]:
    for each in memory:
        yield Touch(
            str(each["filename"]),
            int(each["line"]),
            bool(each["wrote"]),
            int(each["first"]),
            int(each["last"]),
        )


def _places(finding: Finding, role: str) -> set[tuple[str, int]]:
    return {(step.path, step.span.line) for step in finding.related if step.role == role}
