"""One report of all ranks: what every rank says is said once, and what only some say is said by rank.

Faults and remarks are compared as they stand; of untrained parameters each is compared by itself, so that a rank with one
more of them does not part from the others in the rest.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradsight.live.report import ReportLine

if TYPE_CHECKING:
    from gradsight.live.report import WatchReport


@dataclass(frozen=True)
class RanksReport:
    """The reports of the ranks that spoke."""

    common: tuple[str, ...]
    by_ranks: Mapping[tuple[int, ...], tuple[str, ...]]
    steps: Mapping[int, int]
    size: int
    hosts: int
    problems: int

    @property
    def is_clean(self) -> bool:
        """Whether no rank has anything to complain about, and all have spoken."""
        return not self.problems and len(self.steps) == self.size

    def __str__(self) -> str:
        silent = [rank for rank in range(self.size) if rank not in self.steps]
        lines = _headed("all ranks", self.common)
        for ranks, said in sorted(self.by_ranks.items()):
            lines += _headed(_ranks(ranks), said)
        if silent:
            lines.append(f"note: {_ranks(silent)} {'has' if len(silent) == 1 else 'have'} not reported")
        counted = sorted(set(self.steps.values()))
        steps = f"{counted[0]}" if len(counted) == 1 else f"{counted[0]} to {counted[-1]}" if counted else "0"
        where = f" on {self.hosts} nodes" if self.hosts > 1 else ""
        end = (
            "no fault seen"
            if not self.problems
            else f"{self.problems} problem{'s' if self.problems != 1 else ''}"
        )
        return "\n".join(
            [
                *lines,
                f"gradsight: {end}, {steps} optimizer steps watched in each of {len(self.steps)} ranks{where}",
            ]
        )

    __repr__ = __str__


def words_of(report: WatchReport) -> dict[str, Any]:
    """A report as it travels."""
    return {
        "faults": report.fault_blocks(),
        "parameters": [
            [name, line.sentence, line.place] for line in report.parameters for name in line.names
        ],
        "remarks": [f"note: {remark}" for remark in report.remarks],
        "steps": report.steps,
        "host": socket.gethostname(),
    }


def merged(found: Mapping[int, Mapping[str, Any]], size: int) -> RanksReport:
    """What the ranks said, as one report."""
    faults = _speakers((rank, text) for rank, words in found.items() for text in words["faults"])
    parameters = _speakers(
        (rank, tuple(each)) for rank, words in found.items() for each in words["parameters"]
    )
    remarks = _speakers((rank, text) for rank, words in found.items() for text in words["remarks"])
    together: dict[tuple[tuple[int, ...], str, str], list[str]] = {}
    for (name, sentence, place), ranks in parameters.items():
        together.setdefault((ranks, sentence, place), []).append(name)
    said = [(ranks, text) for text, ranks in faults.items()]
    said += [
        (ranks, str(ReportLine(tuple(names), sentence, place)))
        for (ranks, sentence, place), names in together.items()
    ]
    problems = len(said)
    said += [(ranks, text) for text, ranks in remarks.items()]
    by_ranks: dict[tuple[int, ...], list[str]] = {}
    for ranks, text in said:
        by_ranks.setdefault(ranks, []).extend(text.split("\n"))
    everybody = tuple(sorted(found))
    common = by_ranks.pop(everybody, []) if len(found) > 1 else []
    return RanksReport(
        tuple(common),
        {ranks: tuple(lines) for ranks, lines in by_ranks.items()},
        {rank: int(words["steps"]) for rank, words in found.items()},
        size,
        len({words["host"] for words in found.values()}),
        problems,
    )


def _speakers(said: Iterable[tuple[int, Any]]) -> dict[Any, tuple[int, ...]]:
    """Who says each thing."""
    found: dict[Any, set[int]] = {}
    for rank, what in said:
        found.setdefault(what, set()).add(rank)
    return {what: tuple(sorted(ranks)) for what, ranks in found.items()}


def _headed(head: str, lines: Sequence[str]) -> list[str]:
    return [f"{head}: {line}" if not line.startswith(" ") else line for line in lines]


def _ranks(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0, 2 to 5`."""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(_runs(ranks))}"


def _runs(ranks: Sequence[int]) -> Iterator[str]:
    first = last = ranks[0]
    for rank in [*ranks[1:], -1]:
        if rank == last + 1:
            last = rank
            continue
        if last > first + 1:
            yield f"{first} to {last}"
        else:
            yield from map(str, range(first, last + 1))
        first = last = rank
