"""Models that are kept in a collection where a copy was meant: `best = {"loss": loss, "model": model}`, `history.append(model)`.

A collection of models is no mistake by itself.  That copies were meant is told by what the program does in a loop that trains:
it puts a model into something called the best one, or puts the same model into one list again after a step, and reads it later.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.module_aliases import KIND, last_word
from gradsight.detect.naming import value_of_target
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.name_hints import suggests
from gradsight.model.sites import Site
from gradsight.model.trace import Assigned, Collected, ItemRead, Iterated, Stepped
from gradsight.model.values import Instance, Layer, Mapping, Seq

MOST_KEPT = 64


class KeptModel:
    """A module in a collection.  `is_repeated`: the same one was put there again after a step."""

    __slots__ = ("container", "is_repeated", "module", "origin", "site", "stepped", "target")

    def __init__(self, module: Any, container: Any, target: str, origin: str, site: Site) -> None:
        self.module = module
        self.container = container
        self.target = target
        self.origin = origin
        self.site = site
        self.stepped: Site | None = None
        self.is_repeated = False


class KeptModels:
    """Notes what is kept, and speaks when it is read after a step."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.kept: list[KeptModel] = []

    concerning = (ast.Name, ast.Attribute, ast.Dict, ast.Tuple)

    @staticmethod
    def concerned_by(statement: ast.Assign) -> bool:
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Subscript):
            return isinstance(value, (ast.Name, ast.Attribute))
        return isinstance(target, (ast.Name, ast.Attribute)) and isinstance(value, (ast.Dict, ast.Tuple))

    def on_assigned(self, fact: Assigned) -> None:
        target, value = fact.statement.targets[0], fact.statement.value
        site = self.path.site(fact.statement)
        if not any(place.loops for place in (site, *site.callers())):
            return
        if isinstance(target, ast.Subscript):
            # `best["model"] = model`
            if suggests("copy", last_word(target.value)) or suggests("copy", key_word(target)):
                self.note(value_of_target(self.path, target), target.value, value, site)
        elif isinstance(value, (ast.Dict, ast.Tuple)) and suggests("copy", last_word(target)):
            held = value_of_target(self.path, target)
            members = [*held.items.values()] if isinstance(held, Mapping) else getattr(held, "items", [])
            elements = value.values if isinstance(value, ast.Dict) else value.elts
            if isinstance(held, (Mapping, Seq)) and len(members) == len(elements):
                for member, element in zip(members, elements):
                    self.note(member, target, element, site, held)

    def note(
        self, module: Any, target: ast.expr, origin: ast.expr, site: Site, container: Any = None
    ) -> None:
        if is_module(module) and isinstance(origin, (ast.Name, ast.Attribute)) and len(self.kept) < MOST_KEPT:
            container = container if container is not None else value_of_target(self.path, target)
            self.kept.append(KeptModel(module, container, ast.unparse(target), ast.unparse(origin), site))

    def on_collected(self, fact: Collected) -> None:
        call = fact.site.node
        if not isinstance(call, ast.Call) or not call.args or not isinstance(call.func, ast.Attribute):
            return
        value, given = fact.value, call.args[-1]
        pairs = [(value, given)]
        if isinstance(value, Seq) and isinstance(given, ast.Tuple) and len(value.items) == len(given.elts):
            pairs = list(zip(value.items, given.elts))
        for module, origin in pairs:
            if not is_module(module) or not isinstance(origin, (ast.Name, ast.Attribute)):
                continue
            earlier = [one for one in self.kept if one.module is module and one.container is fact.container]
            if not earlier:
                self.note(module, call.func.value, origin, fact.site, fact.container)
            elif earlier[0].stepped is not None and earlier[0].site.key == fact.site.key:
                earlier[0].is_repeated = True

    def on_stepped(self, fact: Stepped) -> None:
        if not self.kept:
            return
        moved = set(self.path.parameters_of(fact.optimizer))
        for one in list(self.kept):
            if one.stepped is None and any(
                tensor in moved for _, tensor in self.path.tensors_of(one.module, "parameter")
            ):
                one.stepped = fact.site

    def on_item_read(self, fact: ItemRead) -> None:
        for one in list(self.kept):
            if one.container is not fact.owner:
                continue
            if is_older(fact) if isinstance(one.site.node, ast.Call) else fact.value is one.module:
                self.read(one, fact.node)

    def on_iterated(self, fact: Iterated) -> None:
        for one in list(self.kept):
            if one.container is fact.sequence:
                self.read(one, fact.node)

    def read(self, one: KeptModel, node: ast.AST) -> None:
        is_collected = isinstance(one.site.node, ast.Call)
        if one.stepped is None or (is_collected and not one.is_repeated):
            return
        self.kept.remove(one)
        steps = [
            Step("written", one.stepped, "this step changes what is kept"),
            Step("read", self.path.site(node), f"`{one.target}` is read here"),
            *self.path.call_steps(one.site),
        ]
        self.claims.add(KIND, one.site, steps, how="kept", target=one.target, origin=one.origin)


def is_older(fact: ItemRead) -> bool:
    """Whether an entry is read that is not the last one: after that there may have been no step."""
    last = len(fact.owner.items) - 1
    return fact.key not in (-1, last)


def is_module(value: Any) -> bool:
    return isinstance(value, (Instance, Layer)) and value.module is not None


def key_word(target: ast.Subscript) -> str:
    key = target.slice
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
