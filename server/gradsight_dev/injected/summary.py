"""The score as a table: by world and by kind for bugs, by kind for safe edits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from gradsight_dev.injected.kinds import WORLDS
from gradsight_dev.injected.scoring import ALARM, ELSEWHERE, FOUND, MISSED, Outcome


def as_text(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Lines of a report; the same outcomes give the same lines."""
    bugs = [one for one in outcomes if one.edit.verdict == "bug"]
    safe = [one for one in outcomes if one.edit.verdict == "safe"]
    files = len({(one.target.origin, one.target.path) for one in outcomes})
    origins = len({one.target.origin for one in outcomes})
    yield f"{len(bugs)} bugs and {len(safe)} safe edits in {files} files of {origins} sources"
    yield f"{'bugs':24} {'n':>5} {'found':>6} {'elsewhere':>10} {'missed':>7}"
    yield _row("all", bugs)
    for world in WORLDS:
        yield _row(f"  {world}", [one for one in bugs if one.target.world == world])
    yield from _by(bugs, lambda one: one.edit.kind, _row)
    yield f"{'safe edits':24} {'n':>5} {'alarms':>6}"
    yield _safe_row("all", safe)
    yield from _by(safe, lambda one: one.edit.kind, _safe_row)


def details(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """One line per edit that did not come out well."""
    for one in outcomes:
        if one.result in (ELSEWHERE, MISSED, ALARM):
            said = ", ".join(f"{alarm.code} {alarm.lines[0]}" for alarm in one.alarms)
            yield f"{one.result:9} {one.edit.name} {one.edit.kind} {one.target.path} {said}".rstrip()


def _by(
    outcomes: Sequence[Outcome], key: Callable[[Outcome], str], row: Callable[[str, Sequence[Outcome]], str]
) -> Iterator[str]:
    groups: defaultdict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        groups[key(one)].append(one)
    for name in sorted(groups):
        yield row(f"  {name}", groups[name])


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    counts = Counter(one.result for one in outcomes)
    share = f"{100 * counts[FOUND] / len(outcomes):5.0f} %" if outcomes else ""
    return f"{name:24} {len(outcomes):5} {counts[FOUND]:6} {counts[ELSEWHERE]:10} {counts[MISSED]:7} {share}".rstrip()


def _safe_row(name: str, outcomes: Sequence[Outcome]) -> str:
    return f"{name:24} {len(outcomes):5} {sum(one.result == ALARM for one in outcomes):6}"
