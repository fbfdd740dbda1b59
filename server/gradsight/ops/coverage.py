"""How much of torch's public surface has a fact, by namespace and by where the facts come from."""

from __future__ import annotations

from dataclasses import dataclass

from gradsight.ops.table import Table


@dataclass(frozen=True, slots=True)
class Room:
    """One namespace: its public names and how many of them have a fact."""

    name: str
    names: int
    known: int
    by_origin: dict[str, int]


@dataclass(frozen=True, slots=True)
class TableCoverage:
    """All namespaces; `missing` lists the names without a fact by reason, `further` counts facts outside."""

    rooms: tuple[Room, ...]
    missing: dict[str, list[str]]
    further: int
    percent: float


def coverage_of(table: Table) -> TableCoverage:
    """Count a table against the names that were public in the torch it was taken from."""
    without = table.missing()
    names_by_room: dict[str, list[str]] = {}
    listed = {name: room for room, names in table.about.get("listed", {}).items() for name in names}
    further = set(table.about.get("further", ()))
    for name in (*table.names(), *without):
        if name in further:
            continue
        room = listed.get(name) or _room_of(name)
        if room:
            names_by_room.setdefault(room, []).append(name)
    rooms = []
    for room, size in table.about.get("rooms", {}).items():
        known = [fact for name in names_by_room.get(room, ()) if (fact := table.find(name)) is not None]
        origins: dict[str, int] = {}
        for fact in known:
            origins[fact.origin] = origins.get(fact.origin, 0) + 1
        rooms.append(Room(room, size, len(known), origins))
    reasons: dict[str, list[str]] = {}
    for name, reason in without.items():
        reasons.setdefault(reason, []).append(name)
    total, known_total = sum(room.names for room in rooms), sum(room.known for room in rooms)
    return TableCoverage(tuple(rooms), reasons, len(further), 100.0 * known_total / total if total else 0.0)


def _room_of(name: str) -> str:
    parts = name.split(".")
    if parts[0] in ("torch", "Tensor") and len(parts) == 2:
        return "torch" if parts[0] == "torch" else "torch.Tensor"
    if name.startswith("nn.functional."):
        return "torch.nn.functional"
    if parts[0] in ("linalg", "special", "fft"):
        return "torch." + parts[0]
    return "torch.nn modules" if parts[0] == "nn" and len(parts) == 2 else ""
