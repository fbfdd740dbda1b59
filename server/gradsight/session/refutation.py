"""Whether a run has earned the right to refute a finding.

It has when it did what the finding speaks of and it went right: the predicted write took place, the predicted save is part
of the graph of a backward, and that backward finished with everything it needed as it was saved, so that its gradient is
that of the reference, the program with a copy of every saved tensor.  What is missing is said in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gradsight.model.finding import Finding
from gradsight.model.run_traces import At, Finished, Proof
from gradsight.rules import rule_of


def proof_of(report: Mapping[str, Any]) -> Proof:
    """The proof in the report of an agent."""
    writes: dict[At, tuple[int, int]] = {}
    for memory in report.get("touches") or ():
        for touch in memory:
            if touch["wrote"]:
                at = (str(touch["filename"]), int(touch["line"]))
                first, last = writes.get(at, (int(touch["first"]), int(touch["last"])))
                writes[at] = (min(first, int(touch["first"])), max(last, int(touch["last"])))
    failed = [
        (str(each["filename"]), int(each["location"]["row"]))
        for each in report.get("caught") or ()
        if each.get("location") is not None
    ]
    finished = tuple(_finished(each) for each in report.get("finished") or ())
    return Proof(finished, writes, tuple(failed), tuple(_written_memory(report)))


def _written_memory(report: Mapping[str, Any]) -> Iterator[tuple[frozenset[At], frozenset[At]]]:
    for touches, makers in zip(report.get("touches") or (), report.get("touched_makers") or ()):
        at = [(bool(each["wrote"]), (str(each["filename"]), int(each["line"]))) for each in touches]
        wrote = frozenset(place for is_write, place in at if is_write)
        if wrote:
            yield wrote, frozenset(place for _, place in at) | _places(makers)


def doubt_about(finding: Finding, proof: Proof) -> str:
    """Why a run that came through every place of a finding does not refute it; empty when it does."""
    stands_on = rule_of(finding.code).stands_on
    own = (finding.path, finding.span.line)
    steps = [(step.role, (step.path, step.span.line)) for step in finding.related]
    rows = {(finding.path, row) for row in range(finding.span.line, finding.span.end_line + 1)}
    needed = {at for role, at in steps if role == "needed"} | (rows if stands_on == "backward" else set())
    if any(at in needed or at in rows or at in {step for _, step in steps} for at in proof.failed):
        return "torch raised an error there, which the program caught"
    if proof.failed and not needed:
        return "torch raised an error, which the program caught"
    saved = [at for role, at in steps if role == "saved"]
    written = [at for role, at in steps if role == "written"]
    if stands_on == "write" and not written:
        written = [own]
    missing = [at for at in written if at not in (proof.writes or {})]
    if missing:
        return f"nothing was written on line {missing[0][1]}"
    source = saved or [at for role, at in steps if role == "made"]
    other = next((at for at in written if not _is_of(proof, at, source)), None) if stands_on else None
    if other is not None:
        return f"what was written on line {other[1]} is not what line {source[0][1]} is about"
    over = [each for each in proof.finished if _is_at(each, finding, needed, rows)]
    if not over:
        return (
            f"no backward on line {max(at[1] for at in needed)} finished"
            if needed
            else "no backward finished"
        )
    if not stands_on:
        return ""
    operator = str(finding.data.get("op") or "") if saved else ""
    through = [each for each in over if all(_has_made(each, at, operator) for at in saved)]
    if not through:
        what = f"the {operator}" if operator else "what was saved"
        return f"{what} on line {saved[0][1]} has no part in a backward that finished"
    timely = [each for each in through if _is_in_time(each, saved, written, proof.writes or {})]
    if not timely:
        return "the write did not come between the save and a backward that finished"
    if not all(each.is_exact for each in timely):
        return "not everything that backward needed could be compared with what was saved"
    return ""


def went_right(proof: Proof) -> bool:
    """Whether every backward of a run finished with all it needed as it was saved."""
    return bool(proof.finished) and not proof.failed and all(each.is_exact for each in proof.finished)


def _is_of(proof: Proof, written: At, source: Sequence[At]) -> bool:
    """Whether a line wrote memory that one of the others made or used: on another path it may be that of another tensor."""
    return not source or any(
        written in wrote and touched & {*source} for wrote, touched in proof.written_memory
    )


def _is_at(finished: Finished, finding: Finding, needed: set[At], rows: set[At]) -> bool:
    """Whether these backwards are the one that a finding speaks of."""
    if rule_of(finding.code).stands_on == "backward":
        return bool(finished.needed & rows)
    return not needed or bool(finished.needed & needed)


def _has_made(finished: Finished, at: At, operator: str) -> bool:
    operators = finished.made.get(at)
    if operators is None or not operator:
        return operators is not None
    return any(
        _bare(name) == _bare(operator) and name.endswith("_") == operator.endswith("_") for name in operators
    )


def _is_in_time(
    finished: Finished, saved: Sequence[At], written: Sequence[At], writes: Mapping[At, tuple[int, int]]
) -> bool:
    """Whether the writes lie between the save and the end of the backward, as far as first and last times tell."""
    begun = min((first for at in saved for first, _ in finished.made[at].values()), default=-1)
    return all(writes[at][1] >= begun and writes[at][0] <= finished.last for at in written)


def _bare(operator: str) -> str:
    return operator.rsplit("::", 1)[-1].split(".")[0].replace("_", "").lower()


def _finished(entry: Mapping[str, Any]) -> Finished:
    made: dict[At, dict[str, tuple[int, int]]] = {}
    for path, line, name, first, last in entry["made"]:
        made.setdefault((str(path), int(line)), {})[str(name)] = (int(first), int(last))
    return Finished(
        _places(entry["needed"]), made, int(entry["first"]), int(entry["last"]), bool(entry["exact"])
    )


def _places(rows: Iterable[Sequence[Any]]) -> frozenset[At]:
    return frozenset((str(path), int(line)) for path, line in rows)
