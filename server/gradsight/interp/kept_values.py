"""Values kept for later that are no copies: a difference of a tensor with itself, results of two calls on one memory.

*Keep*: a name or an attribute was given a tensor that existed before; its memory had a certain epoch then.
"""

from __future__ import annotations

import ast
import itertools
from typing import Any

from gradsight.interp.aliases import BY_HAND, Aliases, StaleName
from gradsight.interp.regions import overlaps
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Storage, Tensor, Write
from gradsight.model.values import MISSING, Instance, Mapping, Seq


class Keep:
    """One keeping: the name (or attribute; empty for an item of a container), the epoch of the memory then, and the text that the value came from."""

    __slots__ = ("epoch", "name", "origin", "site")

    def __init__(self, name: str, epoch: int, site: Site, origin: ast.expr) -> None:
        self.name = name
        self.epoch = epoch
        self.site = site
        self.origin = origin


class KeptValues(Aliases):
    """What was put aside to be compared or used later, and changed meanwhile."""

    keeps: dict[Storage, list[Keep]]
    class_reads: dict[Storage, list[tuple[int, Instance]]]
    """Tensors that a class holds: when, and for which instance, they were read."""

    def do_assign(self, node: ast.Assign) -> Any:
        before = self.numbering.last
        status = super().do_assign(node)
        if isinstance(node.value, KEEPING):
            for target in node.targets:
                for place in target.elts if isinstance(target, ast.Tuple) else (target,):
                    self.note_keep(place, node, before)
        return status

    def value_of_target(self, target: ast.expr) -> Any:
        """What a name, an attribute of a named object or an item of a named dict holds."""
        if isinstance(target, ast.Name):
            scope = self.frame.scope
            while scope is not None and target.id not in scope.names:
                scope = scope.outer
            return scope.names[target.id] if scope is not None else None
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            owner = self.frame.namespace.get(target.value.id)
            return owner.attributes.get(target.attr) if isinstance(owner, Instance) else None
        if isinstance(target, ast.Subscript):
            held = self.value_of_target(target.value)
            key = (
                target.slice.value
                if isinstance(target.slice, ast.Constant)
                else self.value_of_target(target.slice)
            )
            return self.mapping_item(held, key) if isinstance(held, Mapping) else None
        return None

    def note_keep(self, target: ast.expr, node: ast.Assign, before: int) -> None:
        """A target of an assignment got a tensor whose memory is older than the assignment, or a container of such."""
        tensor = self.value_of_target(target)
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
            known.append(Keep(name, storage.epoch, self.site(node), origin))

    def note_kept_items(
        self, container: Seq | Mapping, target: ast.expr, node: ast.Assign, before: int
    ) -> None:
        """`start = [p for p in net.parameters()]`: the items are kept with their container."""
        items = container.items.values() if isinstance(container, Mapping) else container.items
        for tensor in itertools.islice(items, MOST_KEEPS):
            if type(tensor) is Tensor and tensor.storage.serial <= before and not tensor.snapshot:
                known = self.keeps.setdefault(tensor.storage, [])
                if len(known) < MOST_KEEPS:
                    known.append(Keep("", tensor.storage.epoch, self.site(node), node.value))

    def keep_again(self, tensor: Tensor, name: str, origin: ast.expr, node: ast.Assign) -> None:
        """The same call or attribute gives the same memory once more: an older name of it has changed."""
        namespace = self.frame.namespace
        for keep in self.keeps[tensor.storage]:
            if keep.name == name or keep.epoch == tensor.storage.epoch or keep.site.frame is not self.frame:
                continue
            if namespace.get(keep.name) is not tensor or not same_origin(keep.origin, origin):
                continue
            write = next(
                (
                    write for write in tensor.storage.writes
                    if write.epoch > keep.epoch and write.mode in BY_HAND and write.site.frame.depth > self.frame.depth
                ),
                None,
            )  # fmt: skip
            if write is not None and keep.name not in names_given(origin):
                if self.frame.stale is None:
                    self.frame.stale = {}
                asked = not isinstance(origin, ast.Call)
                self.frame.stale[keep.name] = StaleName(write, self.site(node), name, asked)

    twins: dict[int, set[Any]]
    """Containers that were made with one tensor at several places: the keys through which it was written."""

    def sequence_operator(self, name: str, left: Any, right: Any) -> Any:
        result = super().sequence_operator(name, left, right)
        if name == "mul" and isinstance(result, Seq) and any(type(item) is Tensor for item in result.items):
            self.twins[id(result)] = set()
        return result

    def dict_from_keys(self, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        """`dict.fromkeys(names, value)`: one value under all keys."""
        value = args[1] if len(args) > 1 else None
        result = Mapping({}, True)
        iterator, length = self.iterate(args[0]) if args else (iter(()), 0)
        for key in itertools.islice(iterator, MOST_KEEPS):
            self.store_key(result, key, value)
        result.exact = result.exact and length is not None
        if type(value) is Tensor:
            self.twins[id(result)] = set()
            self.stored(value, result, node)
            self.stored(value, result, node)
        return result

    def set_item(self, owner: Any, index: Any, value: Any, node: ast.AST) -> None:
        if id(owner) in self.twins and type(value) is Tensor and value.storage.stores:
            if any(container == id(owner) for container, _, _ in value.storage.stores):
                self.twins[id(owner)].add(self.mapping_key(index))
        super().set_item(owner, index, value, node)

    def sequence_item(self, owner: Seq, index: Any, node: ast.AST) -> Any:
        value = super().sequence_item(owner, index, node)
        if id(owner) in self.twins:
            self.read_twin(owner, index, value, node)
        return value

    def mapping_item(self, owner: Mapping, index: Any) -> Any:
        value = super().mapping_item(owner, index)
        if id(owner) in self.twins:
            self.read_twin(owner, index, value, self.node)
        elif type(value) is Tensor and value.storage.stores and value.storage.writes:
            self.read_overtaken(owner, index, value)
        return value

    def read_overtaken(self, owner: Mapping, index: Any, tensor: Tensor) -> None:
        """An entry of a dict is read whose tensor was written, and put there under another key, since it was."""
        own = self.entry_epochs.get((id(owner), self.mapping_key(index)))
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
            self.entries_are_one(tensor, writes[0], stores[0][2], self.node)

    def read_twin(self, owner: Any, index: Any, value: Any, node: ast.AST) -> None:
        """An entry is read after its tensor was written through another entry."""
        key = self.mapping_key(index)
        written = self.twins[id(owner)]
        if type(value) is not Tensor or key is MISSING or not written - {key} or MISSING in written:
            return
        stores = [store for store in value.storage.stores or () if store[0] == id(owner)]
        writes = [write for write in value.storage.writes if stores and write.epoch > stores[0][1]]
        if writes:
            self.entries_are_one(value, writes[0], stores[0][2], node)

    def class_tensor_read(self, tensor: Tensor, owner: Instance, name: str, node: ast.AST) -> None:
        """A tensor of a class, read by one instance after another one has written it as its own."""
        reads = self.class_reads.setdefault(tensor.storage, [])
        for write in tensor.storage.writes:
            writer = next((reader for tick, reader in reversed(reads) if tick <= write.tick), owner)
            if writer is not owner and self.text_of_target(write.site) == f"self.{name}":
                steps = [
                    Step("made", tensor.site, f"one tensor for all instances of {owner.cls.name}"),
                    Step("read", self.site(node), "read here by another instance"),
                ]
                self.emit(
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
        reads.append((self.tick, owner))

    def operands_of(self, bound: dict[str, Any], node: ast.AST) -> Any:
        if self.keeps:
            self.check_difference(bound, node)
        return super().operands_of(bound, node)

    def check_difference(self, bound: dict[str, Any], node: ast.AST) -> None:
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
            (write.site, Step("made", kept, "kept here, without a copy"))
            if by_hand
            else (kept, Step("written", write.site, f"{write.op} changes it here"))
        )
        steps = [
            other,
            Step("read", self.site(node), "both sides are this one tensor: nothing is left of them"),
            *self.call_steps(place),
        ]
        self.emit(
            "alias-read-after-write",
            place,
            steps,
            how="itself",
            write=write.op,
            target=name or tensor.label,
            alias=tensor.label,
            written=self.text_of_target(write.site),
        )


KEEPING = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.ListComp, ast.DictComp, ast.List, ast.Dict)
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
    return {inner.id for given in arguments for inner in ast.walk(given) if isinstance(inner, ast.Name)}
