"""What two snapshots say differently, grouped by code and severity."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gradsight_dev.compare_reports.recording import Record

COMPARED = ("severity", "certainty", "span", "message", "assumption", "related")


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """One difference: to which group it belongs, whether it is gone, new or changed, where, and in what."""

    group: str
    kind: str
    place: str
    detail: str


def differences(before: Mapping[str, Record], after: Mapping[str, Record], common: bool) -> list[Difference]:
    """All differences in a fixed order; with `common`, only in programs that both snapshots hold."""
    found: list[Difference] = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            if not common:
                found.append(
                    Difference("programs", "gone" if new is None else "new", name, "in one snapshot only")
                )
        elif old["text"] != new["text"] and not (old["failed"] or new["failed"]):
            found.append(Difference("programs", "changed", name, "the text is another one"))
        else:
            found += _in_program(name, old, new)
    return sorted(found)


def as_text(found: list[Difference], brief: bool) -> Iterator[str]:
    """Lines for a reader: per group the counts, then each difference."""
    groups: defaultdict[str, list[Difference]] = defaultdict(list)
    for one in found:
        groups[one.group].append(one)
    for group, members in groups.items():
        counts = Counter(one.kind for one in members)
        yield f"{group}: " + ", ".join(f"{counts[kind]} {kind}" for kind in sorted(counts))
        if not brief:
            yield from (f"  {one.kind:7} {one.place}  {one.detail}" for one in members)


def _in_program(name: str, old: Record, new: Record) -> Iterator[Difference]:
    if bool(old["failed"]) != bool(new["failed"]):
        kind, trace = ("new", new["failed"]) if new["failed"] else ("gone", old["failed"])
        yield Difference("failures", kind, name, trace.strip().splitlines()[-1])
    if old.get("syntax", []) != new.get("syntax", []) and not (old["failed"] or new["failed"]):
        yield Difference("syntax problems", "changed", name, f"{old['syntax']} -> {new['syntax']}")
    was, now = _by_place(old), _by_place(new)
    for place in sorted(was.keys() | now.keys()):
        first, second = was.get(place), now.get(place)
        if first is None or second is None:
            one, kind = (second, "new") if first is None else (first, "gone")
            assert one is not None
            yield Difference(_group(one), kind, _shown(name, one), f"{one['certainty']}: {one['message']}")
            continue
        changed = [key for key in COMPARED if first[key] != second[key]]
        if changed:
            detail = "; ".join(f"{key}: {first[key]} -> {second[key]}" for key in changed)
            yield Difference(_group(first), "changed", _shown(name, first), detail)


def _by_place(record: Record) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Findings by file, code and beginning; a rule speaks once per place, and a number keeps apart what breaks that."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    met: Counter[tuple[Any, ...]] = Counter()
    for finding in record["findings"]:
        place = (finding["path"], finding["code"], finding["span"][0], finding["span"][1])
        numbered = (*place, met[place])
        found[numbered] = finding
        met[place] += 1
    return found


def _group(finding: dict[str, Any]) -> str:
    return f"{finding['code']} {finding['severity']}"


def _shown(name: str, finding: dict[str, Any]) -> str:
    line, column = finding["span"][:2]
    return f"{finding['path']}:{line}:{column}" + ("" if finding["path"] == name else f" (by {name})")
