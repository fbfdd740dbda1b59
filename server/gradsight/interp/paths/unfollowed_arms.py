"""What a card must not say because not every combination of branches was followed.

    if training: scale.clamp_(0, 1)
    state = scale if first else ...         `scale` as it was on the one path that came here

Before the second condition `scale` was seen at two versions; of the paths that go on into the arm only some are executed.  What
differed before a condition, and differs no more among the paths in its arm, is not known there.  In the same way it is not
known who keeps a tensor for backward, if only other paths show the other ways of a condition.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from gradsight.interp.syntax import remembered

TOLD = (
    "is_leaf",
    "requires_grad",
    "made_by",
    "grad_fn",
    "view_of",
    "grad_of",
    "version",
    "written",
    "memory",
    "shape",
)
"""What a look says of a tensor."""
INHERITED = ("is_leaf", "requires_grad", "version", "written", "shape")
"""What a result may have of its operands; a view has the version of its base."""


class Looked(Protocol):
    """All that was seen of one name at one place; `unfollowed` is what else it may be there."""

    unfollowed: set[str]

    def paths(self) -> set[int]:
        """The numbers of the paths that came there."""


class ConditionLooks:
    """What names stood for when conditions were asked, by path."""

    def __init__(self) -> None:
        self.looks: dict[ast.AST, dict[str, dict[Any, set[int]]]] = {}

    def add(self, condition: ast.AST, name: str, look: Any, path: int) -> None:
        names = self.looks.setdefault(condition, {})
        names.setdefault(name, {}).setdefault(look, set()).add(path)

    def mark(self, places: Mapping[ast.AST, Looked]) -> None:
        """Tell each place in an arm what differed before the condition and was followed one way only."""
        for condition, names in self.looks.items():
            parted = {name: looks for name, looks in names.items() if len(looks) > 1}
            for arm in _arms(condition) if parted else ():
                self._mark_arm(arm, parted, places)

    def _mark_arm(
        self, arm: list[ast.AST], parted: Mapping[str, dict[Any, set[int]]], places: Mapping[ast.AST, Looked]
    ) -> None:
        parts = [part for root in arm for part in ast.walk(root)]
        heirs = _heirs(parts, set(parted))
        for part in parts:
            place, name = places.get(part), _name_of(part)
            if place is None or not name:
                continue
            paths = place.paths()
            for source, fields in heirs.get(name, {}).items():
                looks = parted[source]
                place.unfollowed.update(field for field in fields if _is_narrower(looks, field, paths))


class Bindings:
    """Which assignments were executed on any path, and which places lie in loops of which rounds were left out.

    if self.last is not None: loss = loss + ...     in the rounds that were executed nothing had been kept yet
    loss.backward()
    """

    def __init__(self) -> None:
        self.executed: set[ast.AST] = set()
        self.scopes: dict[ast.AST, ast.AST] = {}
        """Places, and the functions that they are in."""

    def mark(self, places: Mapping[ast.AST, Looked]) -> None:
        """A name that other rounds may bind otherwise is told of nowhere in its function."""
        for place, scope in self.scopes.items():
            name = _name_of(place)
            if place in places and any(each not in self.executed for each in _stores(scope).get(name, ())):
                places[place].unfollowed.update(TOLD)


def _stores(scope: ast.AST) -> dict[str, list[ast.AST]]:
    """The places under conditions where a function binds its names."""
    return remembered(scope, "conditional_stores", _conditional_stores)


def _conditional_stores(scope: ast.AST) -> dict[str, list[ast.AST]]:
    found: dict[str, list[ast.AST]] = {}
    for condition in ast.walk(scope):
        for arm in _arms(condition) if isinstance(condition, ast.If) else ():
            for part in (each for statement in arm for each in ast.walk(statement)):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    found.setdefault(part.id, []).append(part)
    return found


class PathTurns:
    """Which way each path went at the conditions that nothing settles, and what it kept for backward."""

    def __init__(self) -> None:
        self.turns: dict[int, set[tuple[ast.AST, bool]]] = {}
        self.kept: dict[int, set[Keeping]] = {}

    def add(self, path: int, turns: set[tuple[ast.AST, bool]], kept: set[Keeping]) -> None:
        self.turns[path] = turns
        self.kept[path] = kept

    def doubted(self, place: ast.AST, paths: set[int], kept: set[Keeping]) -> set[Keeping]:
        """What was kept on these paths, and might not be where conditions go otherwise than they went on all of them.

        The conditions around the place itself cannot go otherwise.  Another path that keeps it too speaks for it.
        """
        others = self.turns.keys() - paths
        if not kept or not others:
            return set()
        here = {turn for path in paths for turn in self.turns[path]}
        elsewhere = {turn for path in others for turn in self.turns[path]}
        around = {node for node, _ in here if any(part is place for part in ast.walk(node))}
        if not any((node, not way) in elsewhere - here and node not in around for node, way in here):
            return set()
        inside = {part for node in around for part in ast.walk(node)}
        return {
            keeping
            for keeping in kept
            if keeping.keeper not in inside and any(keeping not in self.kept[path] for path in others)
        }


class Keeping(NamedTuple):
    """An operator that keeps memory for backward, as which of its operands, and where that memory was made."""

    keeper: ast.AST
    role: str
    made_at: ast.AST


def _is_narrower(looks: Mapping[Any, set[int]], field: str, paths: set[int]) -> bool:
    """Whether a field had more values before the condition than on the paths that went on."""
    every = {getattr(look, field) for look in looks}
    here = {getattr(look, field) for look, seen_on in looks.items() if seen_on & paths}
    return bool(here) and here != every


def _arms(condition: ast.AST) -> Iterator[list[ast.AST]]:
    if isinstance(condition, ast.If):
        yield [*condition.body]
        yield [*condition.orelse]
    elif isinstance(condition, ast.IfExp):
        yield [condition.body]
        yield [condition.orelse]


def _heirs(parts: list[ast.AST], parted: set[str]) -> dict[str, dict[str, tuple[str, ...]]]:
    """The names in an arm that stand for what a name before it stood for, or were computed from it; with what they have of it."""
    found: dict[str, dict[str, tuple[str, ...]]] = {name: {name: TOLD} for name in parted}
    assignments = [part for part in parts if isinstance(part, ast.Assign)]
    for part in assignments:
        read = {each.id for each in ast.walk(part.value) if isinstance(each, ast.Name)}
        for target in part.targets:
            for name in {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}:
                for source in read & found.keys():
                    for origin, fields in list(found[source].items()):
                        had = found.setdefault(name, {}).get(origin, ())
                        given = fields if isinstance(part.value, ast.Name) else INHERITED
                        found[name][origin] = had if len(had) > len(given) else given
    return found


def _name_of(part: ast.AST) -> str:
    return part.id if isinstance(part, ast.Name) else ""
