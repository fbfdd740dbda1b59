"""Lists, tuples, sets, queues and dicts: their items, their methods, and what is put into them or taken out."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from itertools import islice
from typing import Any, TypeGuard

from gradsight.interp.option_defaults import usual_name
from gradsight.interp.python.iteration import Iteration
from gradsight.interp.python.picked_members import likeliest
from gradsight.interp.python.set_algebra import OPERATION, combined
from gradsight.model.tensors import IGNORANT, Node, Tensor
from gradsight.model.trace import Collected, ContainerMade, ItemRead, Iterated, Stored
from gradsight.model.unlisted import owners_of_rest
from gradsight.model.values import (
    MISSING,
    ClassValue,
    External,
    Function,
    Instance,
    Layer,
    Mapping,
    Number,
    Opaque,
    Seq,
    Slice,
    Unknown,
    Value,
    Version,
    is_constant,
    tensors_in,
)

MOST_KEYS = 64
MOST_ITEMS = 256
MOST_PARAMETERS = 2048
"""So many items of a list are kept one by one, and so many of one that a model's parameters are put into."""


ADDING = frozenset(("append", "add", "appendleft", "insert", "extend", "update"))


class Containers(Iteration):
    """Python's own containers."""

    def sequence_item(self, owner: Seq, index: Value, node: ast.AST) -> Value:
        value = self.item_at(owner, index, node)
        self.path.tell(ItemRead(owner, index, value, node))
        return value

    def any_item(self, owner: Seq, index: Value, item: Value, node: ast.AST) -> Value:
        """Where somebody looks, one item of a list stands for another only if all of them are alike."""
        if type(item) is not Tensor or (owner.exact and is_constant(index)):
            return item
        tensors = [each for each in owner.items if type(each) is Tensor]
        alike = {(tensor.node is None, tensor.needs_grad() is True) for tensor in tensors}
        if owner.exact and len(tensors) == len(owner.items) and len(alike) == 1:
            return item
        some = Tensor(item.site, requires_grad=IGNORANT, dtype=item.dtype)
        some.node = Node("item", self.path.site(node), [], IGNORANT, self.path.tick)
        return some

    def item_at(self, owner: Seq, index: Value, node: ast.AST) -> Value:
        items = owner.items
        if isinstance(index, bool):
            index = int(index)
        if isinstance(index, int):
            if owner.exact:
                if -len(items) <= index < len(items):
                    return items[index]
                if owner.partial and items:
                    return items[-1]
                return self.path.gap("index out of range", node)
            if owner.placed is not None:
                return owner.placed[index] if index in owner.placed else recorded_one(unplaced(owner)[::-1])
            if items:
                return items[index % len(items)] if -len(items) <= index < len(items) else items[-1]
            return Unknown("element of an unknown sequence")
        if isinstance(index, Slice):
            place = known_slice(index)
            if owner.partial and index.step is not None:
                # There are more items than listed: any of those may be among the chosen.
                return Seq(owner.kind, list(items), False, owner.site)
            if owner.exact and place is not None:
                try:
                    return Seq(owner.kind, items[place], True, owner.site)
                except ValueError:
                    return Seq(owner.kind, list(items), False)
            return Seq(owner.kind, list(items), False, owner.site)
        if items and isinstance(index, (Number, Unknown)):
            items = unplaced(owner)
            if owner.placed is None and not isinstance(items[0], Tensor):
                # Rounds that are counted go over the items one after the other: `for i in range(n): parts[i]`.
                items = items[min(self.counted_at_least(index), len(items) - 1) :]
            return recorded_one(items) if isinstance(items[0], (Tensor, Seq)) else items[0]
        return Unknown("element of a sequence at an unknown index")

    def counted_at_least(self, number: Number | Unknown) -> int:
        """How many rounds were counted before a number came up, as far as that is known."""
        known = self.path.assumed.get(id(number))
        low = known.low if known is not None and known.whole else None
        return low if isinstance(low, int) and low > 0 else 0

    def mapping_key(self, key: Value) -> Hashable:
        """How a key is stored, or MISSING when it is not known."""
        if is_constant(key):
            return key
        if isinstance(key, Seq) and key.exact:
            parts = [self.mapping_key(item) for item in key.items]
            return MISSING if MISSING in parts else ("tuple", *parts)
        if isinstance(key, Version):
            return ("version", *(id(counter) for counter in key.counters), key.total)
        if isinstance(key, External):
            return ("external", key.path)
        if isinstance(key, (Tensor, Instance, Layer, Function, ClassValue, Opaque)):
            return ("object", id(key))
        return MISSING

    def store_key(self, mapping: Mapping, key: Value, value: Value) -> None:
        stored = self.mapping_key(key)
        if stored is MISSING:
            mapping.exact = False
            mapping.rest.append(value)
            return
        mapping.items[stored] = value
        if not is_constant(key):
            mapping.keys[stored] = key

    def mapping_item(self, owner: Mapping, index: Value) -> Value:
        value = self.item_under(owner, index)
        self.path.tell(ItemRead(owner, index, value, self.path.node))
        return value

    def item_under(self, owner: Mapping, index: Value) -> Value:
        key = self.mapping_key(index)
        if key is not MISSING and key in owner.items:
            return owner.items[key]
        if owner.kind == "defaultdict" and owner.rest == [] and key is not MISSING:
            value = (
                self.language.call(owner.keys["factory"], [], {}, self.path.node)
                if "factory" in owner.keys
                else None
            )
            owner.items[key] = value
            return value
        if owner.rest and (key is MISSING or not owner.items):
            # What was put there last under a key that is not known either.
            return owner.rest[-1]
        if key is MISSING and owner.items:
            self.path.picked.append(owner)
            usual = usual_name(self.path.options, self.path.setting_names, index)
            if usual in owner.items:
                return owner.items[usual]
            first = likeliest(owner, self.path.module.path)
            if isinstance(first, (ClassValue, Function)) and len(owner.items) > 1:
                # What is wrong with one of several that may be chosen is wrong if that one is.
                kind = "class" if isinstance(first, ClassValue) else "function"
                self.path.premises.setdefault(f"`{first.name}` is the {kind} that is chosen")
            return first
        if owner.rest:
            return owner.rest[-1]
        return Unknown("item of a dict under an unknown key")

    def delete_key(self, owner: Mapping, index: Value) -> None:
        """`del mapping[index]`; what goes under an unknown key may be what was put under another."""
        key = self.mapping_key(index)
        if key is MISSING:
            owner.exact = False
            owner.rest.clear()
            return
        owner.items.pop(key, None)
        owner.keys.pop(key, None)

    def delete_items(self, owner: Seq, index: Value) -> None:
        """`del items[index]`; what goes at an unknown place may be any item, and one is gone."""
        owner.placed = None
        place = index if isinstance(index, int) else known_slice(index)
        if place is None or (isinstance(place, int) and not -len(owner.items) <= place < len(owner.items)):
            owner.exact = False
            del owner.items[:1]
            return
        del owner.items[place]
        if place == slice(None, None, None):
            owner.exact, owner.partial, owner.unlisted = True, False, 0

    def sequence_method(
        self, receiver: Seq, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        items = receiver.items
        if name in ADDING:
            self.add_to_sequence(receiver, name, args, node)
            return None
        if name in ("pop", "popleft"):
            return self.taken_from(receiver, name, args)
        if name in ("clear", "reverse", "rotate", "sort", "remove", "discard"):
            self.rearrange(receiver, name, args)
            return None
        if name == "copy":
            return Seq(receiver.kind, list(items), receiver.exact, self.path.site(node))
        if name in ("index", "count", "__len__"):
            return Number()
        if name == "__getitem__" and args:
            return self.sequence_item(receiver, args[0], node)
        if name in OPERATION:
            return self.combined_with(receiver, OPERATION[name], args)
        if name in ("to", "cuda", "cpu") and receiver.kind != "list":
            return receiver
        if name == "_replace" and receiver.fields is not None:
            copy = Seq(receiver.kind, list(items), receiver.exact, self.path.site(node))
            copy.fields = receiver.fields
            for key, value in kwargs.items():
                if key in receiver.fields and receiver.fields.index(key) < len(copy.items):
                    copy.items[receiver.fields.index(key)] = value
            return copy
        return self.path.gap(f"method {name} of a sequence", node)

    def combined_with(self, receiver: Seq, operator: str, others: list[Value]) -> Seq:
        """`set(model.parameters()).difference(head.parameters(), …)`."""
        result = Seq(receiver.kind, list(receiver.items), receiver.exact)
        result.partial = receiver.partial
        for other in others:
            iterator, length = self.iterate(other)
            given = Seq("set", list(islice(iterator, MOST_PARAMETERS)), length is not None)
            given.partial = isinstance(other, Seq) and other.partial
            result = combined(operator, result, given)
        return result

    def add_to_sequence(self, receiver: Seq, name: str, args: list[Value], node: ast.AST) -> None:
        """One more item, or those of other collections."""
        if name in ("append", "add"):
            self.store_in_list(receiver, args[0] if args else None, node)
        elif name == "appendleft":
            receiver.items.insert(0, args[0] if args else None)
        elif name == "insert" and len(args) == 2:
            position = args[0] if isinstance(args[0], int) else len(receiver.items)
            receiver.items.insert(position, args[1])
            for tensor in tensors_in(args[1], 3):
                self.stored(tensor, receiver, node)
        elif name in ("extend", "update"):
            receiver.owners = owners_of_rest([receiver, *args])
            for source in args:
                iterator, length = self.iterate(source)
                for count, item in enumerate(iterator):
                    if count >= 64:
                        receiver.exact = False
                        break
                    self.store_in_list(receiver, item, node)
                if length is None:
                    receiver.exact = receiver.alike = False

    def taken_from(self, receiver: Seq, name: str, args: list[Value]) -> Value:
        """An item that leaves the sequence; the last one of a sequence that is not known stays for the next."""
        items, receiver.placed = receiver.items, None
        if not items:
            return Unknown("element of an unknown sequence")
        position = args[0] if args and isinstance(args[0], int) else (0 if name == "popleft" else -1)
        if receiver.exact or len(items) > 1:
            return items.pop(position if -len(items) <= position < len(items) else -1)
        return items[-1]

    def rearrange(self, receiver: Seq, name: str, args: list[Value]) -> None:
        receiver.placed = None
        if name == "clear":
            receiver.items = []
            receiver.exact, receiver.partial, receiver.unlisted = True, False, 0
        elif name in ("reverse", "rotate"):
            receiver.items.reverse()
        elif name in ("remove", "discard"):
            found = [index for index, item in enumerate(receiver.items) if args and item is args[0]]
            self.delete_items(receiver, found[0] if found else Unknown("place of an item"))

    def store_in_list(self, receiver: Seq, value: Value, node: ast.AST) -> None:
        """Append; what each tensor held at that moment is remembered."""
        for tensor in tensors_in(value, 3):
            self.stored(tensor, receiver, node)
        if type(value) is Unknown and value.graph is not None and self.entry.is_returned(value):
            self.stored(self.entry.tensor_of(value), receiver, node)
        receiver.items.append(value)
        if isinstance(value, (Instance, Layer, Seq)):
            self.path.tell(Collected(value, receiver, self.path.site(node)))
        if self.path.frame.loops:
            self.loops.note_growth(receiver)
        if receiver.maxlen is not None and len(receiver.items) > receiver.maxlen:
            receiver.items.pop(0)
        most = MOST_PARAMETERS if isinstance(value, Tensor) and value.is_parameter else MOST_ITEMS
        if len(receiver.items) > most:
            # The first ones keep their places, and the last ones theirs from the end.
            receiver.items = [*receiver.items[: most // 4], *receiver.items[-most // 4 :]]
            receiver.exact = False

    def stored(self, tensor: Tensor, container: Value, node: ast.AST) -> None:
        """A tensor is put into a container: its place, and the epoch of its memory then."""
        site = self.path.site(node)
        tensor.kept_at = site
        stores = tensor.storage.stores
        if stores is None:
            stores = tensor.storage.stores = []
        stores.append((id(container), tensor.storage.epoch, site))
        self.path.kept_alive.append(container)
        self.path.tell(Stored(tensor, site, container))

    def dict_from_keys(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        """`dict.fromkeys(names, value)`: one value under all keys."""
        value = args[1] if len(args) > 1 else None
        result = Mapping({}, True)
        iterator, length = self.iterate(args[0]) if args else (iter(()), 0)
        for key in islice(iterator, MOST_KEYS):
            self.store_key(result, key, value)
        result.exact = result.exact and length is not None
        if type(value) is Tensor:
            self.path.tell(ContainerMade(result, "fromkeys", node))
            self.stored(value, result, node)
            self.stored(value, result, node)
        return result

    def mapping_method(
        self, receiver: Mapping, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        result = self.mapping_result(receiver, name, args, kwargs, node)
        if name in ("values", "items") and isinstance(result, Seq) and len(result.items) > 1:
            self.path.tell(Iterated(result, node))
        return result

    def mapping_result(
        self, receiver: Mapping, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        items = receiver.items
        if name in ("items", "values", "keys"):
            keys = [receiver.keys.get(key, key) for key in items]
            values = list(items.values())
            if name == "keys":
                result = Seq("list", keys, receiver.exact)
            elif name == "values":
                result = Seq("list", values + receiver.rest, receiver.exact)
            else:
                pairs: list[Any] = [Seq("tuple", [key, value]) for key, value in zip(keys, values)]
                pairs += [Seq("tuple", [Unknown("key of a dict"), value]) for value in receiver.rest]
                result = Seq("list", pairs, receiver.exact)
            return result
        if name in ("get", "pop", "setdefault", "__getitem__"):
            key = self.mapping_key(args[0]) if args else MISSING
            if type(key) is int and self.path.frame.loops:
                self.loops.note_comparison(ast.In, node, node, key, receiver)
            if key is not MISSING and key in items:
                return items.pop(key) if name == "pop" else items[key]
            default = args[1] if len(args) > 1 else kwargs.get("default")
            if receiver.exact and key is not MISSING:
                if name == "setdefault":
                    self.store_key(receiver, args[0], default)
                return default
            return self.mapping_item(receiver, args[0]) if args else Unknown("item of a dict")
        if name == "update":
            for source in args:
                if isinstance(source, Mapping):
                    items.update(source.items)
                    receiver.keys.update(source.keys)
                    receiver.rest.extend(source.rest)
                    receiver.exact = receiver.exact and source.exact
                else:
                    receiver.exact = False
            items.update(kwargs)
            return None
        if name == "copy":
            copy = Mapping(dict(items), receiver.exact, receiver.kind)
            copy.keys = dict(receiver.keys)
            copy.rest = list(receiver.rest)
            return copy
        if name == "clear":
            items.clear()
            receiver.rest.clear()
            receiver.exact = True
            return None
        if name in ("popitem",):
            if receiver.exact and items and not args and not kwargs:
                last = next(reversed(items))
                return Seq("tuple", [receiver.keys.pop(last, last), items.pop(last)])
            receiver.exact = False
            return Seq(
                "tuple", [Unknown("key of a dict"), next(iter(items.values()), Unknown("item of a dict"))]
            )
        return self.path.gap(f"method {name} of a dict", node)


def recorded_one(items: list[Value]) -> Value:
    """An item of which it is not known which one it is: one with a graph if there is one, else the first."""
    recorded = (item for item in items if any(one.node is not None for one in tensors_in(item)))
    return next(recorded, items[0])


def unplaced(owner: Seq) -> list[Value]:
    """The items that stand at no index that is known, or all if there are no others."""
    placed = {id(item) for item in (owner.placed or {}).values()}
    return [item for item in owner.items if id(item) not in placed] or owner.items


def known_slice(index: Value) -> slice | None:
    """A slice of whole numbers, or None."""
    if not isinstance(index, Slice):
        return None
    start, stop, step = index.start, index.stop, index.step
    return slice(start, stop, step) if is_whole(start) and is_whole(stop) and is_whole(step) else None


def is_whole(bound: Value) -> TypeGuard[int | None]:
    """A bound of a slice that is known, or left out."""
    return bound is None or isinstance(bound, int)
