"""Finds the fewest conditions on arguments under which all observations of an operator agree.

The answer is a decision list: the first group whose conditions hold is the case.  What no feature of the arguments
explains stays inside a group as a difference and becomes `sometimes`.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gradsight.agent.facts.measure import Atom, Feature, MeasuredCall

Condition = tuple[str, str, str]
Defaults = Mapping[str, Feature]
# Texts that say too much to be an option.
UNTOLD = frozenset(["equation", "device", "memory_format", "generator"])
TELLING_NUMBERS = ("0.0", "1.0", "inf")


@dataclass
class Group:
    """Observations that one case describes."""

    conditions: tuple[Condition, ...]
    members: list[MeasuredCall]


# What an unusual memory layout may change without a case of its own.
LAYOUT_ATOMS = frozenset(["saved", "odd", "held"])
# Options that tell the shape of a result.
SHAPING = frozenset(["reduction", "dim", "keepdim", "compute_uv", "full_matrices", "some"])
# What is told of a case without ever making one.
REMARKS = frozenset(["unnoticed"])


def told_atoms(seen: MeasuredCall) -> Iterator[tuple[Atom, Hashable]]:
    """The hard atoms that a case has to explain."""
    for atom, value in seen.hard.items():
        if atom[0] not in REMARKS and (seen.usual or atom[0] not in LAYOUT_ATOMS):
            yield atom, value


def groups_of(observations: Sequence[MeasuredCall], defaults: Defaults) -> list[Group]:
    """Split the observations so that hard atoms agree in each group wherever arguments can explain them.

    The plain call, which leaves everything at its default, comes late in the list, after what is special.
    """
    differing, explainable = _differing(observations)
    groups: list[Group] = []
    unexplained = differing - explainable
    writes = {atom for atom in unexplained if atom[0] == "writes"}
    for group in _split(list(observations), explainable, defaults):
        for part in _part_settled(group, unexplained, defaults):
            groups += _part_settled(part, writes, defaults, share=0.25)
    refined: list[Group] = []
    for group in groups:
        refined += _split_by_shape(group)
    return refined


def _part_settled(group: Group, atoms: set[Atom], defaults: Defaults, share: float = 0.5) -> list[Group]:
    """Part off the ordinary calls of a group in which nothing explains the rest: `label_smoothing == 0.0`."""
    if not _conflicts(group.members, atoms):
        return [group]
    best: Group | None = None
    for condition in (*_conditions(group.members), *_kind_conditions(group.members)):
        inside = [each for each in group.members if fits(condition, each)]
        usual = sum(each.usual for each in inside)
        if len(inside) < share * len(group.members) or usual < 3 or _conflicts(inside, atoms):
            continue
        if best is None or len(inside) > len(best.members):
            best = Group((*group.conditions, condition), inside)
    if best is None or len(best.members) == len(group.members):
        return [group]
    rest = [each for each in group.members if not fits(best.conditions[-1], each)]
    opposite = _opposite(best.conditions[-1])
    if opposite is not None and _is_default(best.conditions[-1], defaults):
        return [Group((*group.conditions, opposite), rest), Group(group.conditions, best.members)]
    return [best, Group(group.conditions, rest)]


def _is_default(condition: Condition, defaults: Defaults) -> bool:
    """Whether a call that leaves the argument away meets the condition."""
    name, kind, value = condition
    if name not in defaults:
        return False
    default_kind, literal = defaults[name]
    if kind in ("equals", "not"):
        return (literal == value) == (kind == "equals")
    return default_kind == kind


def _opposite(condition: Condition) -> Condition | None:
    """The condition that holds when this one does not, if there is a word for it."""
    name, kind, value = condition
    if kind == "equals" and value in ("True", "False"):
        return name, "equals", "False" if value == "True" else "True"
    return (name, "not" if kind == "equals" else "equals", value) if kind in ("equals", "not") else None


def fits(condition: Condition, seen: MeasuredCall) -> bool:
    """Whether a call meets a condition."""
    name, kind, value = condition
    features = seen.features
    if kind == "integral":
        return name in seen.integral
    if kind == "rank":
        return name in seen.ranks and _rank_fits(seen.ranks[name], value)
    if name not in features:
        return kind == "none"
    seen_kind, literal = features[name]
    if kind == "equals":
        return literal == value
    if kind == "not":
        return literal != value
    return seen_kind == kind


def _rank_fits(rank: int, value: str) -> bool:
    if value[0] == "<":
        return rank < int(value[1:])
    return rank > int(value[1:]) if value[0] == ">" else rank == int(value)


def _differing(observations: Sequence[MeasuredCall]) -> tuple[set[Atom], set[Atom]]:
    """Atoms that differ somewhere, and those of them that never differ between two calls that look the same."""
    differing: set[Atom] = set()
    first: dict[Atom, Hashable] = {}
    for each in observations:
        for atom, value in told_atoms(each):
            if first.setdefault(atom, value) != value:
                differing.add(atom)
    by_look: dict[tuple[object, ...], dict[Atom, Hashable]] = {}
    hopeless: set[Atom] = set()
    for each in observations:
        look = visible_look(each)
        ranked = (*look, *sorted((name, "rank", str(rank)) for name, rank in each.ranks.items()))
        for atom, value in told_atoms(each):
            # Ranks may explain what is kept; whether memory is shared depends on strides, which no condition tells.
            known = by_look.setdefault(ranked if atom[0] in LAYOUT_ATOMS else look, {})
            if atom in differing and known.setdefault(atom, value) != value:
                hopeless.add(atom)
    return differing, differing - hopeless


def visible_look(seen: MeasuredCall) -> tuple[object, ...]:
    """What conditions can see of a call, ranks left out."""
    options = sorted((name, *_visible(feature)) for name, feature in seen.features.items())
    return (*options, *sorted(seen.integral))


def look_without_numbers(seen: MeasuredCall) -> tuple[object, ...]:
    """What of a call can tell how many tensors come out: flags and kinds, not sizes."""
    options = sorted(
        (name, kind, "" if kind == "number" else text) for name, (kind, text) in seen.features.items()
    )
    return tuple(options)


def _visible(feature: Feature) -> Feature:
    kind, literal = feature
    return feature if kind != "number" or literal in TELLING_NUMBERS else (kind, "")


def _conflicts(members: Sequence[MeasuredCall], atoms: set[Atom]) -> int:
    first: dict[Atom, Hashable] = {}
    found = set()
    for each in members:
        for atom, value in told_atoms(each):
            if atom in atoms and first.setdefault(atom, value) != value:
                found.add(atom)
    return len(found)


def _split(members: list[MeasuredCall], atoms: set[Atom], defaults: Defaults) -> list[Group]:
    groups: list[Group] = []
    while _conflicts(members, atoms):
        best = _best_step(members, atoms, defaults)
        if best is None:
            break
        inside = [each for each in members if all(fits(c, each) for c in best)]
        members = [each for each in members if not all(fits(c, each) for c in best)]
        groups.append(Group(best, inside))
    groups.append(Group((), members))
    return _usual_last(groups)


def _usual_last(groups: list[Group]) -> list[Group]:
    """A rank is rarely known when a program is read, so the last two groups are turned round if the rank is the usual."""
    if len(groups) < 2 or len(groups[-2].conditions) != 1:
        return groups
    (name, kind, value), before, last = groups[-2].conditions[0], groups[-2], groups[-1]
    if kind != "rank" or value[0] not in "<>" or len(before.members) <= len(last.members):
        return groups
    opposite = f"<{int(value[1:]) + 1}" if value[0] == ">" else f">{int(value[1:]) - 1}"
    return [*groups[:-2], Group(((name, kind, opposite),), last.members), Group((), before.members)]


def _best_step(
    members: list[MeasuredCall], atoms: set[Atom], defaults: Defaults
) -> tuple[Condition, ...] | None:
    """The condition whose group agrees in itself and leaves the fewest conflicts behind."""
    options = list(_conditions(members))
    plain = [each for each in options if not _is_number_value(each)]
    kinds = _kind_conditions(members)
    ranks = _rank_conditions(members)
    stages = (
        [(each,) for each in plain],
        [(each,) for each in options if _is_number_value(each)],
        [(each,) for each in kinds],
        _pairs(plain, plain),
        _pairs(options, options),
        _pairs(kinds, options),
        [(each,) for each in ranks],
        _pairs(ranks, options),
        _pairs(ranks, ranks),
    )
    fallback: tuple[Condition, ...] | None = None
    for stage in stages:
        better, pure = _best_of(stage, members, atoms, defaults)
        if better is not None:
            return better
        fallback = fallback or pure
    return fallback


def _pairs(ones: Sequence[Condition], others: Sequence[Condition]) -> list[tuple[Condition, ...]]:
    if ones is others:
        return [pair for pair in itertools.combinations(ones, 2) if pair[0][0] != pair[1][0]]
    return [(one, other) for one in ones for other in others if one[0] != other[0]]


def _best_of(
    candidates: Sequence[tuple[Condition, ...]],
    members: list[MeasuredCall],
    atoms: set[Atom],
    defaults: Defaults,
) -> tuple[tuple[Condition, ...] | None, tuple[Condition, ...] | None]:
    """(a step after which fewer atoms are in conflict, the largest group that agrees in itself)."""
    before = _conflicts(members, atoms)
    better: tuple[tuple[bool, int, int, int], tuple[Condition, ...]] | None = None
    pure: tuple[int, tuple[Condition, ...]] | None = None
    for candidate in candidates:
        inside = [each for each in members if all(fits(c, each) for c in candidate)]
        if not inside or len(inside) == len(members) or _conflicts(inside, atoms):
            continue
        outside = [each for each in members if not all(fits(c, each) for c in candidate)]
        left = _conflicts(outside, atoms)
        is_plain = all(_is_default(condition, defaults) for condition in candidate)
        rank = (is_plain, left, _plainness(candidate), -len(inside))
        if left < before and (better is None or rank < better[0]):
            better = (rank, candidate)
        if len(inside) > 1 and (pure is None or len(inside) > pure[0]):
            pure = (len(inside), candidate)
    return better and better[1], pure and pure[1]


def _plainness(candidate: tuple[Condition, ...]) -> int:
    order = {
        "tensor": 0,
        "number": 1,
        "none": 1,
        "equals": 2,
        "indices": 0,
        "sequence": 2,
        "text": 2,
        "basic": 3,
    }
    weight = sum(order.get(kind, 5) for _, kind, _ in candidate)
    unusual = sum(value in TELLING_NUMBERS[1:] for _, kind, value in candidate if kind in ("equals", "not"))
    return weight + 2 * unusual + sum(value == "False" for _, _, value in candidate)


def _is_number_value(condition: Condition) -> bool:
    return condition[1] in ("equals", "not") and condition[2] in TELLING_NUMBERS


def _conditions(members: Sequence[MeasuredCall]) -> Iterator[Condition]:
    seen: dict[Condition, None] = {}
    for each in members:
        for name, (kind, literal) in each.features.items():
            if name in UNTOLD:
                continue
            if kind in ("tensor", "none", "sequence", "indices", "basic", "number"):
                seen[name, kind, ""] = None
            if kind in ("flag", "text") or (kind == "number" and literal in TELLING_NUMBERS):
                seen[name, "equals", literal] = None
                if kind != "flag":
                    seen[name, "not", literal] = None
    return iter(seen)


def _kind_conditions(members: Sequence[MeasuredCall]) -> list[Condition]:
    return [(name, "integral", "") for name in sorted({name for each in members for name in each.integral})]


def _rank_conditions(members: Sequence[MeasuredCall]) -> list[Condition]:
    names = sorted({name for each in members for name in each.ranks})
    return [(name, "rank", value) for name in names for value in ("<3", ">2", "<4", ">3", "0", "1")]


def _split_by_shape(group: Group) -> list[Group]:
    """Part a group once more where an option such as `reduction` tells the shape."""
    if _shape_known(group.members):
        return [group]
    best: tuple[int, list[Group]] = (0, [group])
    for condition in _conditions(group.members):
        if condition[0] not in SHAPING or condition[1] != "equals" or _is_number_value(condition):
            continue
        if condition[2] == "False":
            continue
        inside = [each for each in group.members if fits(condition, each)]
        outside = [each for each in group.members if not fits(condition, each)]
        if not inside or not outside:
            continue
        settled = (len(inside) if _shape_known(inside) else 0) + (
            len(outside) if _shape_known(outside) else 0
        )
        if settled > best[0] and 2 * settled > len(group.members):
            parts = [Group((*group.conditions, condition), inside), Group(group.conditions, outside)]
            best = (settled, parts)
    return best[1]


def _shape_known(members: Sequence[MeasuredCall]) -> bool:
    return all(bool(shared) for shared in shared_shapes(members).values())


def shared_shapes(members: Sequence[MeasuredCall]) -> dict[str, set[str]]:
    """Per result the shape rules that hold for every member."""
    found: dict[str, set[str]] = {}
    for each in members:
        for name, rules in each.shapes.items():
            found[name] = found[name] & rules if name in found else set(rules)
    return found
