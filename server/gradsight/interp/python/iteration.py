"""Iterating over values: what a loop, an unpacking or a star gets, and how many of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain, repeat

from gradsight.interp.path_constraints import LENGTH
from gradsight.interp.path_state import RaisedError
from gradsight.interp.python.loops import MANY
from gradsight.interp.python.objects_floor import ObjectsFloor
from gradsight.model.library_objects import DataLoader
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Iterated, IteratorExhausted
from gradsight.model.values import (
    Array,
    ClassValue,
    Function,
    Instance,
    Layer,
    Mapping,
    Module,
    Number,
    Opaque,
    Seq,
    Stream,
    Unknown,
    Value,
    tensors_in,
)

ROUNDS_WHEN_UNKNOWN = 3


class Iteration(ObjectsFloor):
    """The iteration protocol."""

    def iterate(self, value: Value, at_least: int = 0) -> tuple[Iterator[Value], int | None]:
        """An iterator of values and the true length, or None where it is not known."""
        if isinstance(value, Seq) and value.kind == "list" and len(value.items) > 1 and value.exact:
            self.path.tell(Iterated(value, self.path.node))
        count = max(at_least, ROUNDS_WHEN_UNKNOWN)
        if isinstance(value, Seq):
            return self.iterate_sequence(value, count)
        if isinstance(value, (range, str, bytes)):
            return iter(value), len(value)
        if isinstance(value, Tensor):
            return self.iterate_tensor(value, count)
        if isinstance(value, Stream):
            length = getattr(value, "length", MANY) if value.exact else None
            return self.draw(value, value.iterator, length)
        if isinstance(value, Mapping):
            keys = [value.keys.get(key, key) for key in value.items]
            if value.exact:
                return iter(keys), len(keys)
            return self.repeat(keys or [Unknown("key of an unknown dict")], count), None
        if isinstance(value, Layer):
            return self.iterate_layer(value, count)
        if isinstance(value, Instance):
            return self.iterate_instance(value, count)
        if isinstance(value, Opaque):
            return self.libraries.iterate_opaque(value, count)
        if isinstance(value, Array):
            return iter([Array(None, value.cuts) for _ in range(count)]), None
        if isinstance(value, Number):
            # Numbers cannot be iterated: this is a row of a nested list, as `tolist()` gives it.
            return iter([Number(value.cuts) for _ in range(count)]), None
        if isinstance(value, Unknown):
            items = [value.derived(("item", index), "element of an unknown value") for index in range(count)]
            return iter(items), None
        if isinstance(value, ClassValue) and value.kind == "enum":
            return iter([Unknown("enumeration member") for _ in range(count)]), None
        return iter([Unknown("element of an unknown value") for _ in range(count)]), None

    def iterate_sequence(self, value: Seq, count: int) -> tuple[Iterator[Value], int | None]:
        if value.once:
            return self.draw(value, iter(list(value.items)), len(value.items) if value.exact else None)
        if value.exact:
            return iter(list(value.items)), len(value.items)
        if value.kind == "range":
            return chain(value.items, repeat(Number(), count)), None
        if value.items:
            return self.repeat(value.items, count), None
        return iter([Unknown("element of an unknown sequence") for _ in range(count)]), None

    def draw(
        self, source: Seq | Stream, items: Iterator[Value], length: int | None
    ) -> tuple[Iterator[Value], int | None]:
        """Go through an iterator; a second time there is nothing left of it."""
        if source.spent is not None:
            self.iterator_used_up(source, self.path.node)
            return iter(()), 0
        # Generator functions may be endless where the machine ends them, and are drained on purpose.
        return (self.until_spent(source, items) if source.site is not None else items), length

    def until_spent(self, source: Seq | Stream, items: Iterator[Value]) -> Iterator[Value]:
        node = self.path.node
        reader = self.path.site(node.iter if isinstance(node, (ast.For, ast.AsyncFor)) else node)
        gave = False
        for item in items:
            gave = gave or any(tensor.is_parameter for tensor in tensors_in(item, 3))
            yield item
        if gave and source.exact:
            source.spent = reader

    def iterator_used_up(self, source: Seq | Stream, node: ast.AST, refused: bool = False) -> None:
        """An iterator that gave parameters is gone through once more, and gives nothing; whether torch refuses that."""
        self.path.tell(IteratorExhausted(source, node, refused))

    def repeat(self, items: list[Value], count: int) -> Iterator[Value]:
        for index in range(max(count, min(len(items), 8))):
            yield items[index % len(items)]

    def iterate_tensor(self, tensor: Tensor, count: int) -> tuple[Iterator[Value], int | None]:
        """Iterating a tensor unbinds it: each row is one of several views."""
        length = tensor.shape[0] if tensor.shape else None
        length = length if isinstance(length, int) else None
        number = length if length is not None and length <= 16 else max(count, 3)
        rows = self.autograd.unbind_rows(tensor, number)
        return iter(rows), length

    def iterate_instance(self, value: Instance, count: int) -> tuple[Iterator[Value], int | None]:
        if value.cls.kind == "tuple":
            return iter(list(value.attributes.values())), len(value.attributes)
        method, _ = value.cls.find("__iter__")
        if isinstance(method, Function):
            found = self.language.call_function(method, [value], {}, self.path.node)
            if isinstance(found, Instance):
                advance, _ = found.cls.find("__next__")
                if isinstance(advance, Function):
                    return self.advance_by_hand(found, advance, count), None
            return self.iterate(found)
        if value.held is not None:
            return self.iterate(value.held, count)
        getter, _ = value.cls.find("__getitem__")
        if isinstance(getter, Function):
            return self.items_by_number(value, getter), None
        if value.cls.kind == "module" and "0" in value.attributes:
            children = list(self.iterate_children(value))
            layer = value.attributes.get("<layer>")
            is_whole = isinstance(layer, Layer) and not layer.options.get("inexact")
            return iter(children), len(children) if is_whole else None
        return iter([Unknown("element of an unknown object") for _ in range(count)]), None

    def items_by_number(self, value: Instance, getter: Function) -> Iterator[Value]:
        """`value[0]`, `value[1]` …, as Python iterates over what has no `__iter__`, until it raises."""
        for index in range(2):
            try:
                item = self.language.call_function(getter, [value, index], {}, self.path.node)
            except RaisedError:
                return
            yield item

    def advance_by_hand(self, iterator: Instance, advance: Function, count: int) -> Iterator[Value]:
        """What an iterator of the program's own gives, until it raises."""
        for _ in range(count):
            try:
                item = self.language.call_function(advance, [iterator], {}, self.path.node)
            except RaisedError:
                return
            yield item

    def iterate_children(self, value: Module) -> Iterator[Value]:
        index = 0
        while str(index) in value.attributes:
            yield value.attributes[str(index)]
            index += 1

    def iterate_layer(self, value: Layer, count: int) -> tuple[Iterator[Value], int | None]:
        if value.name in ("nn.ModuleDict", "nn.ParameterDict"):
            keys = list(value.attributes)
            return iter(keys), len(keys)
        children = list(self.iterate_children(value))
        if value.options.get("inexact"):
            if children:
                return self.repeat(children, count), None
            return iter([Unknown("layer of an unknown list") for _ in range(count)]), None
        return iter(children), len(children)

    def length_of(self, value: Value) -> Value:
        """`len(value)`: known, or a number."""
        if isinstance(value, (str, bytes, range)):
            return len(value)
        if isinstance(value, Seq) and value.exact and (not value.partial or value.unlisted is not None):
            count = len(value.items) + (value.unlisted or 0)
            return count if value.maxlen is None else min(count, value.maxlen)
        if isinstance(value, Mapping) and value.exact:
            return len(value.items)
        if isinstance(value, Tensor) and value.shape:
            first = value.shape[0]
            return first if isinstance(first, int) else Number()
        if isinstance(value, Layer) and not value.options.get("inexact"):
            return sum(1 for key in value.attributes if value.name.endswith("Dict") or key.isdigit())
        if isinstance(value, Instance):
            if value.cls.kind == "tuple":
                return len(value.attributes)
            method, _ = value.cls.find("__len__")
            if isinstance(method, Function):
                return self.language.call_function(method, [value], {}, self.path.node)
            if value.held is not None:
                return self.length_of(value.held)
        if isinstance(value, Unknown):
            size = value.derived(LENGTH, "length of an unknown value", "number")
            size.asks = (LENGTH, value, None)
            return size
        if isinstance(value, DataLoader):
            return Number()
        return Number()


def name_of_source(node: ast.AST) -> str:
    """What is gone through: the iterable of a loop, or the first argument of a call."""
    source = node.args[0] if isinstance(node, ast.Call) and node.args else node
    if isinstance(source, (ast.GeneratorExp, ast.ListComp)):
        source = source.generators[0].iter
    return ast.unparse(source) if isinstance(source, (ast.Name, ast.Attribute)) else ""
