"""One report of all ranks: what every rank says is said once, and what only some say is said by rank."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradsight.live.report import WatchReport


@dataclass(frozen=True)
class RanksReport:
    """The reports of the ranks that spoke."""

    common: tuple[str, ...]
    by_rank: Mapping[int, tuple[str, ...]]
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
        lines = [f"all ranks: {line}" if not line.startswith(" ") else line for line in self.common]
        for rank, own in sorted(self.by_rank.items()):
            lines += [f"rank {rank}: {line}" if not line.startswith(" ") else line for line in own]
        lines += [f"note: rank {rank} has not reported" for rank in silent]
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
        "blocks": report.blocks(),
        "remarks": [f"note: {remark}" for remark in report.remarks],
        "steps": report.steps,
        "host": socket.gethostname(),
    }


def merged(found: Mapping[int, Mapping[str, Any]], size: int) -> RanksReport:
    """What the ranks said, as one report."""
    said: dict[str, list[int]] = {}
    for rank, words in sorted(found.items()):
        for block in dict.fromkeys([*words["blocks"], *words["remarks"]]):
            said.setdefault(block, []).append(rank)
    everybody = [*sorted(found)]
    common = [block for block, ranks in said.items() if ranks == everybody and len(found) > 1]
    by_rank: dict[int, tuple[str, ...]] = {}
    for rank in everybody:
        own = [block for block, ranks in said.items() if rank in ranks and block not in common]
        if own:
            by_rank[rank] = tuple(line for block in own for line in block.split("\n"))
    problems = {block for words in found.values() for block in words["blocks"]}
    return RanksReport(
        tuple(line for block in common for line in block.split("\n")),
        by_rank,
        {rank: int(words["steps"]) for rank, words in found.items()},
        size,
        len({words["host"] for words in found.values()}),
        len(problems),
    )
