"""Counts and rates over a campaign, and whether the bars are met."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from gradsight_dev.fuzz.case import Case
from gradsight_dev.fuzz.compare import DISAGREEMENTS
from gradsight_dev.fuzz.oracle import BY_NAME

FOUND_BAR = 0.98
LINE_BAR = 0.97


@dataclass
class Summary:
    """What a campaign has shown."""

    programs: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    verdicts_by_kind: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    families: Counter[str] = field(default_factory=Counter)
    results: Counter[str] = field(default_factory=Counter)
    results_by_kind: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    results_by_family: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    partly: int = 0
    crashes: list[Case] = field(default_factory=list)
    disagreements: list[Case] = field(default_factory=list)
    foreign: Counter[str] = field(default_factory=Counter)
    torch_seconds: float = 0.0
    engine_seconds: float = 0.0

    def add(self, case: Case) -> None:
        """Count one case."""
        self.programs += 1
        self.torch_seconds += case.torch_seconds
        self.engine_seconds += case.engine_seconds
        self.verdicts[case.truth.verdict] += 1
        self.verdicts_by_kind[case.program.kind][case.truth.verdict] += 1
        self.families.update({failure.family for failure in case.truth.failures})
        if case.truth.verdict == "foreign":
            self.foreign[case.truth.note] += 1
        if case.crash:
            self.crashes.append(case)
        if case.comparison is None:
            return
        result = case.comparison.result
        self.results[result] += 1
        self.results_by_kind[case.program.kind][result] += 1
        self.partly += case.comparison.partly and result == "agrees"
        if case.truth.failures and case.comparison.about in BY_NAME:
            self.results_by_family[case.comparison.about][result] += 1
        if result in DISAGREEMENTS:
            self.disagreements.append(case)

    @property
    def judged_failing(self) -> int:
        """Failing programs whose failure the rules promise to find."""
        return sum(
            sum(counts.values())
            for name, counts in self.results_by_family.items()
            if _is_promised_error(name)
        )

    @property
    def found(self) -> float:
        """The share of failing programs with a finding of the right family."""
        missed = sum(
            counts["miss"] for name, counts in self.results_by_family.items() if _is_promised_error(name)
        )
        return 1 - missed / self.judged_failing if self.judged_failing else 1.0

    @property
    def on_line(self) -> float:
        """The share of failing programs with such a finding on a causing line."""
        right = sum(
            counts["agrees"] for name, counts in self.results_by_family.items() if _is_promised_error(name)
        )
        return right / self.judged_failing if self.judged_failing else 1.0

    @property
    def false_alarms(self) -> int:
        return self.results["false alarm"]

    @property
    def meets_bars(self) -> bool:
        """No false alarm, no crash, and enough failures found on the right lines."""
        return (
            not self.false_alarms
            and not self.crashes
            and self.found >= FOUND_BAR
            and self.on_line >= LINE_BAR
        )


def summarise(cases: Iterable[Case]) -> Summary:
    """Count all cases."""
    summary = Summary()
    for case in cases:
        summary.add(case)
    return summary


def as_text(summary: Summary, *, with_engine: bool, most: int = 40) -> str:
    """The report people read."""
    lines = [f"{summary.programs} programs, {summary.torch_seconds:.1f} s on torch"]
    if with_engine:
        lines[0] += f", {summary.engine_seconds:.1f} s in the engine"
    total = max(summary.programs, 1)
    lines.append(
        "verdicts: "
        + ", ".join(f"{name} {count} ({count / total:.1%})" for name, count in summary.verdicts.most_common())
    )
    lines.append(
        "failures: " + ", ".join(f"{name} {count}" for name, count in summary.families.most_common())
    )
    lines += [
        "",
        f"{'kind':<14}{'programs':>9}{'raises':>8}{'silent':>8}{'cut':>6}{'exact':>7}{'foreign':>9}",
    ]
    for kind, counts in sorted(summary.verdicts_by_kind.items()):
        row = f"{kind:<14}{sum(counts.values()):>9}{counts['raises']:>8}{counts['silent'] + counts['masked']:>8}"
        lines.append(row + f"{counts['cut']:>6}{counts['exact']:>7}{counts['foreign']:>9}")
    for note, count in summary.foreign.most_common(8):
        lines.append(f"foreign: {count} x {note}")
    if with_engine:
        lines += _engine_lines(summary, most)
    return "\n".join(lines)


def as_data(summary: Summary) -> dict[str, object]:
    """The same as plain data, for a file."""
    return {
        "programs": summary.programs,
        "verdicts": dict(summary.verdicts),
        "failures": dict(summary.families),
        "results": dict(summary.results),
        "results_by_family": {name: dict(counts) for name, counts in summary.results_by_family.items()},
        "results_by_kind": {name: dict(counts) for name, counts in summary.results_by_kind.items()},
        "false_alarms": summary.false_alarms,
        "found": round(summary.found, 4),
        "on_line": round(summary.on_line, 4),
        "meets_bars": summary.meets_bars,
        "seconds": {"torch": round(summary.torch_seconds, 2), "engine": round(summary.engine_seconds, 2)},
        "disagreements": [
            {
                "seed": case.program.seed,
                "kind": case.program.kind,
                "result": case.comparison.result,
                "about": case.comparison.about,
                "detail": case.comparison.detail,
            }
            for case in summary.disagreements
            if case.comparison is not None
        ],
        "crashes": [{"seed": case.program.seed, "traceback": case.crash} for case in summary.crashes],
    }


def _engine_lines(summary: Summary, most: int) -> list[str]:
    lines = ["", f"{'family':<14}{'failing':>8}{'found':>8}{'on line':>9}"]
    for name, counts in sorted(summary.results_by_family.items(), key=lambda item: -sum(item[1].values())):
        failing = sum(counts.values())
        missed = counts["miss"] + counts["silent miss"] + counts["unjudged"]
        lines.append(f"{name:<14}{failing:>8}{1 - missed / failing:>8.1%}{counts['agrees'] / failing:>9.1%}")
    lines += [
        "",
        f"false alarms: {summary.false_alarms} (bar 0)",
        f"failing programs found: {summary.found:.2%} of {summary.judged_failing} (bar {FOUND_BAR:.0%})",
        f"on a causing line: {summary.on_line:.2%} (bar {LINE_BAR:.0%})",
        f"found on one path and not on another: {summary.partly}",
        f"engine crashes: {len(summary.crashes)}",
    ]
    shown: Counter[tuple[str, str]] = Counter()
    for case in summary.disagreements:
        assert case.comparison is not None
        about = (case.comparison.result, case.comparison.about)
        shown[about] += 1
        if shown[about] <= max(2, most // 8) and sum(shown.values()) <= most * 4:
            lines.append(
                f"  seed {case.program.seed} [{case.program.kind}] {about[0]}: {case.comparison.detail or about[1]}"
            )
    lines += [f"  {count} x {result} ({about})" for (result, about), count in shown.most_common()]
    for case in summary.crashes[:5]:
        lines.append(
            f"  seed {case.program.seed} [{case.program.kind}] crash: {case.crash.strip().splitlines()[-1]}"
        )
    return lines


def _is_promised_error(family: str) -> bool:
    return family != "silent" and BY_NAME[family].promised
