"""Finds the fewest conditions on arguments under which all observations of an operator agree.

The answer is a decision list: the first group whose conditions hold is the case.  What no feature of the arguments
explains stays inside a group as a difference and becomes `sometimes`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Dict, Hashable, Iterator, List, Optional, Sequence, Set, Tuple

from gradsight.agent.facts.measure import Atom, Feature, Observation

Condition = Tuple[str, str, str]
TELLING_NUMBERS = ("0.0", "1.0", "2.0", "inf")


@dataclass
class Group:
    """Observations that one case describes."""

    conditions: Tuple[Condition, ...]
    members: List[Observation]


def groups_of(observations: Sequence[Observation]) -> List[Group]:
    """Split the observations so that hard atoms agree in each group wherever arguments can explain them."""
    groups = _split(list(observations), _explainable(observations))
    refined: List[Group] = []
    for group in groups:
        refined += _split_by_shape(group)
    return refined


def fits(condition: Condition, seen: Observation) -> bool:
    """Whether a call meets a condition."""
    name, kind, value = condition
    features = seen.features
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
    if value == "<3":
        return rank < 3
    return rank > 2 if value == ">2" else rank == int(value)


def _explainable(observations: Sequence[Observation]) -> Set[Atom]:
    """Atoms that differ somewhere, but never between two calls that look the same."""
    differing: Set[Atom] = set()
    first: Dict[Atom, Hashable] = {}
    for each in observations:
        for atom, value in each.hard.items():
            if first.setdefault(atom, value) != value:
                differing.add(atom)
    by_look: Dict[Tuple[object, ...], Dict[Atom, Hashable]] = {}
    hopeless: Set[Atom] = set()
    for each in observations:
        look = (
            *sorted((name, *_visible(feature)) for name, feature in each.features.items()),
            *sorted((name, "rank", str(min(rank, 3))) for name, rank in each.ranks.items()),
        )
        known = by_look.setdefault(look, {})
        for atom in differing:
            if atom in each.hard and known.setdefault(atom, each.hard[atom]) != each.hard[atom]:
                hopeless.add(atom)
    return differing - hopeless


def _visible(feature: Feature) -> Feature:
    kind, literal = feature
    return feature if kind != "number" or literal in TELLING_NUMBERS else (kind, "")


def _conflicts(members: Sequence[Observation], atoms: Set[Atom]) -> int:
    first: Dict[Atom, Hashable] = {}
    found = set()
    for each in members:
        for atom in atoms:
            if atom in each.hard and first.setdefault(atom, each.hard[atom]) != each.hard[atom]:
                found.add(atom)
    return len(found)


def _split(members: List[Observation], atoms: Set[Atom]) -> List[Group]:
    groups: List[Group] = []
    while _conflicts(members, atoms):
        best = _best_step(members, atoms)
        if best is None:
            break
        inside = [each for each in members if all(fits(c, each) for c in best)]
        members = [each for each in members if not all(fits(c, each) for c in best)]
        groups.append(Group(best, inside))
    groups.append(Group((), members))
    return groups


def _best_step(members: List[Observation], atoms: Set[Atom]) -> Optional[Tuple[Condition, ...]]:
    """The condition whose group agrees in itself and leaves the fewest conflicts behind."""
    singles = list(_conditions(members))
    for candidates in (
        [(each,) for each in singles if not _is_number_value(each)],
        [(each,) for each in singles if _is_number_value(each)],
        [
            pair
            for pair in itertools.combinations(singles, 2)
            if pair[0][0] != pair[1][0] and not any(_is_number_value(each) for each in pair)
        ],
        [pair for pair in itertools.combinations(singles, 2) if pair[0][0] != pair[1][0]],
        [(each,) for each in _rank_conditions(members)],
        [pair for pair in itertools.combinations(_rank_conditions(members), 2) if pair[0][0] != pair[1][0]],
    ):
        found = _best_of(candidates, members, atoms)
        if found is not None:
            return found
    return None


def _best_of(
    candidates: Sequence[Tuple[Condition, ...]], members: List[Observation], atoms: Set[Atom]
) -> Optional[Tuple[Condition, ...]]:
    before = _conflicts(members, atoms)
    best: Optional[Tuple[Tuple[int, int, int], Tuple[Condition, ...]]] = None
    for candidate in candidates:
        inside = [each for each in members if all(fits(c, each) for c in candidate)]
        if not inside or len(inside) == len(members) or _conflicts(inside, atoms):
            continue
        outside = [each for each in members if not all(fits(c, each) for c in candidate)]
        left = _conflicts(outside, atoms)
        if left >= before and _same_behaviour(inside, outside, atoms):
            continue
        rank = (left, _plainness(candidate), -len(inside))
        if best is None or rank < best[0]:
            best = (rank, candidate)
    return None if best is None else best[1]


def _same_behaviour(inside: List[Observation], outside: List[Observation], atoms: Set[Atom]) -> bool:
    """A step that neither lowers the number of conflicts nor removes a differing value brings nothing."""
    for atom in atoms:
        here = {each.hard[atom] for each in inside if atom in each.hard}
        there = {each.hard[atom] for each in outside if atom in each.hard}
        if here and there and here != there and len(there) == 1:
            return False
    return True


def _plainness(candidate: Tuple[Condition, ...]) -> int:
    order = {"tensor": 0, "number": 1, "none": 1, "equals": 2, "indices": 0, "sequence": 2, "text": 2, "basic": 3}
    weight = sum(order.get(kind, 5) for _, kind, _ in candidate)
    return weight + sum(3 for _, kind, value in candidate if kind == "equals" and value == "False")


def _is_number_value(condition: Condition) -> bool:
    return condition[1] in ("equals", "not") and condition[2] in TELLING_NUMBERS


def _conditions(members: Sequence[Observation]) -> Iterator[Condition]:
    seen: Dict[Condition, None] = {}
    for each in members:
        for name, (kind, literal) in each.features.items():
            if kind in ("tensor", "none", "sequence", "indices", "basic", "number"):
                seen[name, kind, ""] = None
            if kind in ("flag", "text") or (kind == "number" and literal in TELLING_NUMBERS):
                seen[name, "equals", literal] = None
                seen[name, "not", literal] = None
    return iter(seen)


def _rank_conditions(members: Sequence[Observation]) -> List[Condition]:
    names = sorted({name for each in members for name in each.ranks})
    return [(name, "rank", value) for name in names for value in ("<3", ">2", "0", "1")]


def _split_by_shape(group: Group) -> List[Group]:
    """Part a group once more where an option such as `reduction` tells the shape."""
    if _shape_known(group.members):
        return [group]
    for condition in _conditions(group.members):
        if condition[1] != "equals" or _is_number_value(condition) or condition[2] == "False":
            continue
        inside = [each for each in group.members if fits(condition, each)]
        outside = [each for each in group.members if not fits(condition, each)]
        if inside and outside and _shape_known(inside) and _shape_known(outside):
            return [Group((*group.conditions, condition), inside), Group(group.conditions, outside)]
    return [group]


def _shape_known(members: Sequence[Observation]) -> bool:
    return all(bool(shared) for shared in shared_shapes(members).values())


def shared_shapes(members: Sequence[Observation]) -> Dict[str, Set[str]]:
    """Per result the shape rules that hold for every member."""
    found: Dict[str, Set[str]] = {}
    for each in members:
        for name, rules in each.shapes.items():
            found[name] = found[name] & rules if name in found else set(rules)
    return found
