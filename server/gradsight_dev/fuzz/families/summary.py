"""Counts over the programs of families: found, alarms, discarded."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from gradsight_dev.fuzz.families.case import Case

FOUND_BAR = 0.98
WARNING_BAR = 0.001


@dataclass(slots=True)
class Tally:
    """What came of each kind."""

    results: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    cases: list[Case] = field(default_factory=list)
    exact: int = 0
    """Versions that torch runs as they should be."""
    errors: int = 0
    warnings: int = 0

    def add(self, case: Case) -> None:
        self.results[case.kind.family, case.kind.name][case.result] += 1
        if case.result != "discarded":
            self.exact += 2 if case.kind.effect == "same" else 1
        self.errors += any(alarm.startswith("error") for alarm in case.alarms)
        self.warnings += any(alarm.startswith("warning") for alarm in case.alarms)
        if case.result not in ("found", "quiet") or case.alarms:
            self.cases.append(case)

    def share(self, family: str = "") -> tuple[int, int]:
        """Found, and all hazards that torch confirmed."""
        counts = Counter[str]()
        for (name, _), results in self.results.items():
            if family in ("", name):
                counts.update(results)
        return counts["found"], counts["found"] + counts["missed"] + counts["other story"]

    @property
    def meets_bars(self) -> bool:
        found, hazards = self.share()
        return found >= FOUND_BAR * hazards and not self.errors and self.warnings <= WARNING_BAR * self.exact

    def lines(self, *, verbose: bool = False) -> list[str]:
        """The report that people read."""
        lines = []
        for family in dict.fromkeys(family for family, _ in self.results):
            found, hazards = self.share(family)
            lines.append(f"{family}: {found} of {hazards} found ({found / max(1, hazards):.1%})")
            for (name, kind), counts in sorted(self.results.items()):
                if name == family:
                    told = ", ".join(f"{count} {result}" for result, count in counts.most_common())
                    lines.append(f"    {kind:<34}{told}")
        found, hazards = self.share()
        lines.append(f"all: {found} of {hazards} found ({found / max(1, hazards):.2%}, bar {FOUND_BAR:.0%})")
        lines.append(
            f"exact programs: {self.exact}; with an error {self.errors} (bar 0), with a warning {self.warnings} (bar 0.1 %)"
        )
        discarded = sum(counts["discarded"] for counts in self.results.values())
        lines.append(f"discarded, because torch did not do what the kind promises: {discarded}")
        for case in self.cases if verbose else ():
            lines.append(f"{case.result} {case.kind.name} seed {case.seed}: {case.detail[:300]}")
            lines += [f"    alarm: {alarm[:200]}" for alarm in case.alarms]
        return lines
