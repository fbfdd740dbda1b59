"""Values kept for later that are no copies: a difference of a tensor with itself, results of two calls on one memory.

*Keep*: a name or an attribute was given a tensor that existed before; its memory had a certain epoch then.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping as Given
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.naming import value_of_target
from gradsight.detect.path import Path
from gradsight.detect.reads_after_write import ReadsAfterWrite
from gradsight.detect.second_names import BY_HAND, StaleName
from gradsight.detect.wording import quoted_write
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.interp.tensors.regions import overlaps
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Storage, Tensor, Write
from gradsight.model.trace import Assigned, ClassTensorRead, ContainerMade, ItemRead, ItemStoring, Used
from gradsight.model.values import MISSING, Instance, Mapping, Seq

KEEPING = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.ListComp, ast.DictComp, ast.List, ast.Dict)
"""Expressions that may give a tensor that was there before, or a container of such."""


class Keep:
    """One keeping: the name (or attribute; empty for an item of a container), the epoch of the memory then, and the text that the value came from."""

    __slots__ = ("epoch", "name", "origin", "site")

    def __init__(self, name: str, epoch: int, site: Site, origin: ast.expr) -> None:
        self.name = name
        self.epoch = epoch
        self.site = site
        self.origin = origin


class SnapshotAliases:
    """What was put aside to be compared or used later, and changed meanwhile."""

    def __init__(self, path: Path, claims: Claims, reads: ReadsAfterWrite) -> None:
        self.path = path
        self.claims = claims
        self.reads = reads
        self.keeps: dict[Storage, list[Keep]] = {}
        self.class_reads: dict[Storage, list[tuple[int, Instance]]] = {}
        """Tensors that a class holds: when, and for which instance, they were read."""
        self.twins: dict[int, set[Any]] = {}
        """Containers that were made with one tensor at several places: the keys through which it was written."""

    concerning = KEEPING

    def on_assigned(self, fact: Assigned) -> None:
        node = fact.statement
        for target in node.targets:
            for place in target.elts if isinstance(target, ast.Tuple) else (target,):
                self.note_keep(place, node, fact.newest)

    def note_keep(self, target: ast.expr, node: ast.Assign, before: int) -> None:
        """A target of an assignment got a tensor whose memory is older than the assignment, or a container of such."""
        tensor = value_of_target(self.path, target)
        if type(tensor) is Seq or type(tensor) is Mapping:
            self.note_kept_items(tensor, target, node, before)
        if type(tensor) is not Tensor or tensor.storage.serial > before or tensor.snapshot:
            return
        name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
        storage = tensor.storage
        known = self.keeps.setdefault(storage, [])
        origin = node.value
        if isinstance(origin, ast.Name):
            older = next((keep for keep in reversed(known) if keep.name == origin.id), None)
            origin = older.origin if older is not None else origin
        elif known and storage.writes and isinstance(target, ast.Name):
            self.keep_again(tensor, name, origin, node)
        if len(known) < MOST_KEEPS:
            known.append(Keep(name, storage.epoch, self.path.site(node), origin))

    def note_kept_items(
        self, container: Seq | Mapping, target: ast.expr, node: ast.Assign, before: int
    ) -> None:
        """`start = [p for p in net.parameters()]`: the items are kept with their container."""
        items = container.items.values() if isinstance(container, Mapping) else container.items
        for tensor in itertools.islice(items, MOST_KEEPS):
            if type(tensor) is Tensor and tensor.storage.serial <= before and not tensor.snapshot:
                known = self.keeps.setdefault(tensor.storage, [])
                if len(known) < MOST_KEEPS:
                    known.append(Keep("", tensor.storage.epoch, self.path.site(node), node.value))

    def keep_again(self, tensor: Tensor, name: str, origin: ast.expr, node: ast.Assign) -> None:
        """The same call or attribute gives the same memory once more: an older name of it has changed."""
        namespace = self.path.frame.namespace
        for keep in self.keeps[tensor.storage]:
            if (
                keep.name == name
                or keep.epoch == tensor.storage.epoch
                or keep.site.frame is not self.path.frame
            ):
                continue
            if namespace.get(keep.name) is not tensor or not same_origin(keep.origin, origin):
                continue
            write = next(
                (
                    write for write in tensor.storage.writes
                    if write.epoch > keep.epoch and write.mode in BY_HAND and write.site.frame.depth > self.path.frame.depth
                ),
                None,
            )  # fmt: skip
            if write is not None and keep.name not in names_given(origin):
                if self.path.frame.watched is None:
                    self.path.frame.watched = {}
                asked = not isinstance(origin, ast.Call)
                self.path.frame.watched[keep.name] = StaleName(write, self.path.site(node), name, asked)

    def on_container_made(self, fact: ContainerMade) -> None:
        made = fact.container
        items = made.items.values() if isinstance(made, Mapping) else made.items
        if fact.how in ("repeat", "fromkeys") and any(type(item) is Tensor for item in items):
            self.twins[id(made)] = set()

    def on_item_storing(self, fact: ItemStoring) -> None:
        owner, index, value = fact.owner, fact.key, fact.value
        if id(owner) in self.twins and type(value) is Tensor and value.storage.stores:
            if any(container == id(owner) for container, _, _ in value.storage.stores):
                self.twins[id(owner)].add(self.path.mapping_key(index))

    def on_item_read(self, fact: ItemRead) -> None:
        owner, value = fact.owner, fact.value
        if id(owner) in self.twins:
            self.read_twin(owner, fact.key, value, fact.node)
        elif isinstance(owner, Mapping) and type(value) is Tensor:
            if value.storage.stores and value.storage.writes:
                self.read_overtaken(owner, fact.key, value)

    def read_overtaken(self, owner: Mapping, index: Any, tensor: Tensor) -> None:
        """An entry of a dict is read whose tensor was written, and put there under another key, since it was."""
        own = self.path.entry_epochs.get((id(owner), self.path.mapping_key(index)))
        stores = [store for store in tensor.storage.stores or () if store[0] == id(owner)]
        if own is None or len(stores) < 2 or tensor.grad_of is not None:
            return
        newest = max(epoch for _, epoch, _ in stores)
        writes = [
            write
            for write in tensor.storage.writes
            if own < write.epoch <= newest and overlaps(write.region, tensor.region)
        ]
        if writes:
            self.reads.entries_are_one(tensor, writes[0], stores[0][2], self.path.node)

    def read_twin(self, owner: Any, index: Any, value: Any, node: ast.AST) -> None:
        """An entry is read after its tensor was written through another entry."""
        key = self.path.mapping_key(index)
        written = self.twins[id(owner)]
        if type(value) is not Tensor or key is MISSING or not written - {key} or MISSING in written:
            return
        stores = [store for store in value.storage.stores or () if store[0] == id(owner)]
        writes = [write for write in value.storage.writes if stores and write.epoch > stores[0][1]]
        if writes:
            self.reads.entries_are_one(value, writes[0], stores[0][2], node)

    def on_class_tensor_read(self, fact: ClassTensorRead) -> None:
        """A tensor of a class, read by one instance after another one has written it as its own."""
        tensor, owner, name, node = fact.tensor, fact.owner, fact.name, fact.node
        reads = self.class_reads.setdefault(tensor.storage, [])
        for write in tensor.storage.writes:
            writer = next((reader for tick, reader in reversed(reads) if tick <= write.tick), owner)
            if writer is not owner and self.path.text_of_target(write.site) == f"self.{name}":
                steps = [
                    Step("made", tensor.site, f"all instances of `{owner.cls.name}` share this tensor"),
                    Step("read", self.path.site(node), "another instance reads it here"),
                ]
                self.claims.add(
                    "alias-read-after-write",
                    write.site,
                    steps,
                    how="class",
                    write=write.op,
                    target=name,
                    alias=owner.cls.name,
                    written=f"self.{name}",
                )
                break
        reads.append((self.path.tick, owner))

    def on_used(self, fact: Used) -> None:
        if self.keeps:
            self.check_difference(fact.arguments, fact.node)

    def check_difference(self, bound: Given[str, Any], node: ast.AST) -> None:
        """`new - old`, where both are one tensor that was written since `old` was kept."""
        tensors = [value for value in bound.values() if type(value) is Tensor]
        if len(tensors) != 2 or tensors[0] is not tensors[1] or not tensors[0].storage.writes:
            return
        sides = sides_of_difference(node)
        tensor = tensors[0]
        if sides is None or tensor.grad_of is not None or ast.dump(sides[0]) == ast.dump(sides[1]):
            return
        kept = self.oldest_keep(tensor, sides)
        if kept is None:
            return
        epoch, place, name = kept
        write = next((w for w in tensor.storage.writes if w.epoch > epoch and w.mode != "accumulate"), None)
        if write is not None:
            self.difference_with_itself(tensor, write, place, name, node)

    def oldest_keep(self, tensor: Tensor, sides: tuple[ast.expr, ast.expr]) -> tuple[int, Site, str] | None:
        """When and where one side of a difference was put aside."""
        names = {side.id if isinstance(side, ast.Name) else getattr(side, "attr", "") for side in sides}
        found = [keep for keep in self.keeps.get(tensor.storage, ()) if keep.name in names]
        if found:
            return found[-1].epoch, found[-1].site, found[-1].name
        inside = next((keep for keep in self.keeps.get(tensor.storage, ()) if not keep.name), None)
        if inside is not None:
            return inside.epoch, inside.site, ""
        stores = tensor.storage.stores
        return (stores[0][1], stores[0][2], "") if stores else None

    def difference_with_itself(
        self, tensor: Tensor, write: Write, kept: Site, name: str, node: ast.AST
    ) -> None:
        by_hand = write.mode in BY_HAND and write.op != "load_state_dict"
        place, other = (
            (write.site, Step("made", kept, "stored here without a copy"))
            if by_hand
            else (kept, Step("written", write.site, f"{quoted_write(write)} changes it here"))
        )
        steps = [
            other,
            Step(
                "read",
                self.path.site(node),
                "both sides are the same tensor, so the difference is always zero",
            ),
            *self.path.call_steps(place),
        ]
        self.claims.add(
            "alias-read-after-write",
            place,
            steps,
            how="itself",
            write=write.op,
            target=name or tensor.label,
            alias=tensor.label,
            written=self.path.text_of_target(write.site),
        )


MOST_KEEPS = 64
DIFFERENCES = {
    "sub", "subtract", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "dist", "cosine_similarity",
    "pairwise_distance", "allclose", "equal", "copy_",
}  # fmt: skip


def sides_of_difference(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """The two expressions that are held against each other, or None where a node is no comparison."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return node.left, node.right
    if not isinstance(node, ast.Call) or not node.args:
        return None
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name not in DIFFERENCES:
        return None
    if len(node.args) > 1:
        return node.args[0], node.args[1]
    return (function.value, node.args[0]) if isinstance(function, ast.Attribute) else None


def same_origin(older: ast.expr, newer: ast.expr) -> bool:
    """Whether two expressions ask for the same thing, of one object or of two that share it."""
    return type(older) is type(newer) and asked_for(older) != "" and asked_for(older) == asked_for(newer)


def asked_for(origin: ast.expr) -> str:
    """The function that is called or the attribute that is read; a function named `…_` says that it writes."""
    asked = origin.func if isinstance(origin, ast.Call) else origin
    if isinstance(asked, ast.Attribute):
        name = asked.attr
    else:
        name = asked.id if isinstance(asked, ast.Name) and asked is not origin else ""
    return "" if name.endswith("_") else name


def names_given(origin: ast.expr) -> set[str]:
    """The names that a call gets as arguments."""
    arguments = [*origin.args, *(k.value for k in origin.keywords)] if isinstance(origin, ast.Call) else []
    return {inner.id for given in arguments for inner in syntax_parts(given) if isinstance(inner, ast.Name)}
