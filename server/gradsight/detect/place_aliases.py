"""A name for what a dict, a list or an attribute holds: `z = stats["mu"]; z += noise` changes `stats["mu"]` too.

To fetch a state and advance it in place is an idiom (`average = state["average"]; average += gradient`).  What tells the
mistake from it is that the program goes on with both, the name and the place, as if they were two values.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.changed_inputs import SETTING, operands_of
from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.detect.second_names import BY_HAND, names_reaching
from gradsight.interp.syntax import names_read, remembered, statement_around
from gradsight.model.events import Step
from gradsight.model.rule import quoted
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Tensor, Write
from gradsight.model.trace import Assigned, ItemRead, Iterated, Used, Wrote
from gradsight.model.values import Instance, Mapping, Seq

MOST_ALIASES = 64


class PlaceAlias:
    """A name that was bound to what a place holds, and the write that went through it."""

    __slots__ = ("frame", "is_used", "name", "origin", "owner", "read_at", "site", "tensor", "write")

    def __init__(self, frame: Frame, name: str, origin: ast.expr, tensor: Tensor, site: Site) -> None:
        self.frame = frame
        self.owner = owner_of(origin, frame)
        """What holds the tensor, if it has a name."""
        self.name = name
        self.origin = origin
        self.tensor = tensor
        self.site = site
        self.write: Write | None = None
        self.is_used = False
        """Whether the name was read after the write."""
        self.read_at: ast.AST | None = None
        """Where the place was read after the write."""


class PlaceAliases:
    """Reads of a place after its tensor was changed under a name."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.aliases: list[PlaceAlias] = []

    concerning = (ast.Subscript, ast.Attribute)

    @staticmethod
    def concerned_by(statement: ast.Assign) -> bool:
        return len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)

    def on_assigned(self, fact: Assigned) -> None:
        statement = fact.statement
        target, origin = statement.targets[0], statement.value
        if not isinstance(target, ast.Name):
            return
        tensor = self.path.frame.namespace.get(target.id)
        if type(tensor) is not Tensor or tensor.serial > fact.newest or tensor.snapshot:
            return
        if tensor.is_parameter or len(self.aliases) >= MOST_ALIASES:
            return
        self.aliases.append(PlaceAlias(self.path.frame, target.id, origin, tensor, self.path.site(statement)))

    def on_wrote(self, fact: Wrote) -> None:
        if fact.write.mode not in BY_HAND or fact.op in SETTING:
            return
        for alias in self.aliases:
            if (
                alias.write is None
                and alias.tensor is fact.tensor
                and alias.frame.namespace.get(alias.name) is alias.tensor
                and alias.name in names_reaching(fact.site, alias.frame)
            ):
                alias.write = fact.write

    def on_used(self, fact: Used) -> None:
        if self.aliases:
            tensors = [value for value in fact.arguments.values() if type(value) is Tensor]
            for alias in self.written_here():
                if any(tensor is alias.tensor for tensor in tensors):
                    for operand in operands_of(fact.node):
                        self.operand_read(alias, operand, fact.node)
            for alias in self.written_elsewhere():
                if any(tensor is alias.tensor for tensor in tensors):
                    for operand in operands_of(fact.node):
                        if isinstance(operand, ast.Attribute) and operand.attr == getattr(
                            alias.origin, "attr", ""
                        ):
                            self.owner_read(alias, owner_of(operand, self.path.frame), operand)

    def operand_read(self, alias: PlaceAlias, operand: ast.expr, node: ast.AST) -> None:
        if isinstance(operand, ast.Name):
            alias.is_used = alias.is_used or operand.id == alias.name
            write = alias.write
            if alias.is_used and alias.read_at is not None and write is not None:
                # The text of a module is executed statement by statement: what follows shows when it comes.
                if alias.tensor.node is not None:
                    self.claim(alias, write, alias.read_at)
        elif text_of(operand) == text_of(alias.origin):
            self.place_read(alias, node)

    def on_item_read(self, fact: ItemRead) -> None:
        if self.aliases and type(fact.value) is Tensor:
            for alias in self.written_here():
                if fact.value is alias.tensor and text_of(fact.node) == text_of(alias.origin):
                    self.place_read(alias, fact.node)
            for alias in self.written_elsewhere():
                if fact.value is alias.tensor:
                    self.owner_read(alias, fact.owner, fact.node)

    def on_iterated(self, fact: Iterated) -> None:
        """`states` is gone through, after the entry that a name stands for was changed under the name."""
        if self.aliases and type(fact.sequence) is Seq:
            for alias in self.written_here():
                if isinstance(alias.origin, ast.Subscript) and any(
                    item is alias.tensor for item in fact.sequence.items
                ):
                    self.place_read(alias, fact.node)

    def written_here(self) -> list[PlaceAlias]:
        frame = self.path.frame
        return [alias for alias in self.aliases if alias.write is not None and alias.frame is frame]

    def written_elsewhere(self) -> list[PlaceAlias]:
        """Names in functions that are over, which went on with what they wrote; a tensor without a graph is a state."""
        frame = self.path.frame
        return [
            alias
            for alias in self.aliases
            if alias.write is not None
            and alias.frame is not frame
            and alias.owner is not None
            and alias.tensor.node is not None
        ]

    def owner_read(self, alias: PlaceAlias, owner: object, node: ast.AST) -> None:
        """`stats["mu"]` in another function, after the one that was given `stats` changed it and returned the name."""
        write = alias.write
        if owner is not alias.owner or write is None or not is_read_after(alias.name, write, alias.frame):
            return
        if alias.frame.namespace.get(alias.name) is alias.tensor:
            self.claim(alias, write, node)

    def place_read(self, alias: PlaceAlias, node: ast.AST) -> None:
        write = alias.write
        statement = statement_around(node, alias.frame)
        if write is None or statement is None or alias.frame.namespace.get(alias.name) is not alias.tensor:
            return
        both = alias.name in names_read(statement)
        alias.is_used = alias.is_used or is_read_after(alias.name, write, alias.frame)
        if not both and (alias.tensor.node is None or not alias.is_used):
            alias.read_at = node
            return
        self.claim(alias, write, node)

    def claim(self, alias: PlaceAlias, write: Write, node: ast.AST) -> None:
        if alias not in self.aliases:
            return
        self.aliases.remove(alias)
        place = quoted(text_of(alias.origin))
        steps = [
            Step("made", alias.site, f"{quoted(alias.name)} becomes {place} itself here"),
            Step("read", self.path.site(node), f"{place} is read here, with the new value"),
        ]
        self.claims.add(
            "alias-read-after-write",
            write.site,
            steps,
            how="name",
            write=write.op,
            target=text_of(alias.origin),
            alias=alias.name,
            written=self.path.text_of_target(write.site),
        )


def owner_of(place: ast.expr, frame: Frame) -> Any:
    """The object that a place is a part of, where it has a name: `stats` of `stats["mu"]`."""
    base = place.value if isinstance(place, (ast.Subscript, ast.Attribute)) else None
    found = frame.namespace.get(base.id) if isinstance(base, ast.Name) else None
    return found if isinstance(found, (Mapping, Instance)) else None


def is_read_after(name: str, write: Write, frame: Frame) -> bool:
    """Whether a statement after the write reads the name: it stands for a value of its own then."""
    line = getattr(write.site.node, "end_lineno", 0)
    return frame.function is not None and any(
        isinstance(inner, ast.Name)
        and inner.id == name
        and isinstance(inner.ctx, ast.Load)
        and inner.lineno > line
        for inner in ast.walk(frame.function.node)
    )


def text_of(node: ast.AST) -> str:
    return remembered(node, "unparsed", ast.unparse)
