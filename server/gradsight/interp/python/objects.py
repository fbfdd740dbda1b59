"""Attributes, items and methods of Python's own objects: instances, classes, modules, text, numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from gradsight.interp.python.containers import known_slice
from gradsight.interp.python.contexts import GUARD
from gradsight.interp.python.function_objects import FunctionObjects
from gradsight.interp.python.generators import generator_method
from gradsight.interp.shared_names import EnclosedNames
from gradsight.model.library_objects import Distribution
from gradsight.model.passed_cuts import cuts_of
from gradsight.model.read_numbers import read_by
from gradsight.model.tensors import NO_CUTS, Cut, Tensor
from gradsight.model.trace import ClassTensorRead, ForwardCalled, ItemStoring
from gradsight.model.unseen_holders import may_be_held, may_require_grad
from gradsight.model.values import (
    MISSING,
    AbsentGrad,
    Array,
    Bound,
    ClassValue,
    Constant,
    External,
    Function,
    Instance,
    Layer,
    Mapping,
    Method,
    Number,
    Opaque,
    Partial,
    PythonModule,
    Seq,
    Slice,
    Stream,
    Super,
    Unknown,
    Value,
    is_constant,
    tensors_in,
)

TEXT_RESULTS = {
    "split": "list", "rsplit": "list", "splitlines": "list", "partition": "tuple", "rpartition": "tuple",
}  # fmt: skip
SAFE_TEXT = {"lower", "upper", "strip", "lstrip", "rstrip", "startswith", "endswith", "replace", "split", "join", "title",
             "format", "count", "find", "index", "isdigit", "isalpha", "capitalize", "zfill", "rsplit", "partition"}  # fmt: skip

CONTAINER_TYPES: dict[type, type] = {Mapping: dict, Seq: list}
"""What an object that is a container holds its items in, and the type whose methods it has."""
MOST_STORED = 8
"""How many values a list of unknown length remembers of what is stored into it."""


class Objects(FunctionObjects):
    """Attribute and item access, and method calls on built-in containers."""

    # -- attributes --------------------------------------------------------------------------------------------------

    def get_attribute(self, owner: Value, name: str, node: ast.AST) -> Value:
        if isinstance(owner, External):
            return self.libraries.external_attribute(owner, name)
        if isinstance(owner, Tensor):
            return self.autograd.tensor_attribute(owner, name, node)
        if isinstance(owner, Instance):
            return self.instance_attribute(owner, name, node)
        if isinstance(owner, Layer):
            return self.nn.layer_attribute(owner, name, node)
        if isinstance(owner, Unknown):
            return self.unknown_attribute(owner, name, node)
        if isinstance(owner, PythonModule):
            return self.libraries.module_attribute(owner, name)
        if isinstance(owner, ClassValue):
            value, holder = owner.find(name)
            if value is MISSING:
                return self.class_attribute(owner, name)
            if type(value) is not Function and holder is not None and type(holder.namespace) is EnclosedNames:
                return self.entry.read_shared(holder.namespace, name)
            if isinstance(value, Function) and value.binding == "class":
                return Method(value, owner)
            return value
        if isinstance(owner, AbsentGrad):
            self.autograd.absent_grad_used(owner, node)
            return Unknown("attribute of None")
        if isinstance(owner, Opaque):
            return self.libraries.opaque_attribute(owner, name, node)
        return self.attribute_of_builtin(owner, name, node)

    def attribute_of_builtin(self, owner: Value, name: str, node: ast.AST) -> Value:
        """What sequences, functions, arrays, slices and numbers tell of themselves."""
        if isinstance(owner, Seq) and name == "maxlen" and owner.maxlen is not None:
            return owner.maxlen
        if isinstance(owner, Seq) and owner.fields is not None and name in owner.fields:
            position = owner.fields.index(name)
            if position < len(owner.items):
                return owner.items[position]
        if isinstance(owner, Super):
            return self.super_attribute(owner, name, node)
        if isinstance(owner, (Function, Method)):
            function = owner.function if isinstance(owner, Method) else owner
            if isinstance(function, Function):
                return self.function_attribute(function, name)
            return Unknown("attribute of a function", "text" if name == "__name__" else "")
        if isinstance(owner, Array):
            if name == "shape":
                return (
                    Seq("tuple", list(owner.shape))
                    if owner.shape is not None
                    else Unknown("shape of an array")
                )
            if name == "T":
                return Array(owner.tensor, owner.cuts)
        if isinstance(owner, Slice):
            return {"start": owner.start, "stop": owner.stop, "step": owner.step}.get(name)
        if isinstance(owner, (int, float)) and name in ("real", "imag"):
            return owner.real if name == "real" else owner.imag
        return Bound(owner, name)

    def instance_attribute(self, owner: Instance, name: str, node: ast.AST) -> Value:
        if owner.cls.intercepts:
            found = self.intercepted_read(owner, name, node)
            if found is not MISSING:
                return found
        return self.stored_attribute(owner, name, node)

    def stored_attribute(self, owner: Instance, name: str, node: ast.AST) -> Value:
        """What an object holds, or its class, or nn.Module, or what `__getattr__` makes of the name."""
        attributes = owner.attributes
        if name in attributes:
            return attributes[name]
        value, holder = owner.cls.find(name)
        if value is not MISSING:
            if type(value) is not Function and holder is not None and type(holder.namespace) is EnclosedNames:
                value = self.entry.read_shared(holder.namespace, name)
            if type(value) is Tensor:
                self.path.tell(ClassTensorRead(value, owner, name, node))
            return self.language.bind_method(value, owner, owner.cls)
        if name == "__class__":
            return owner.cls
        if name == "__dict__":
            return self.attributes_dict(owner)
        if owner.module is not None:
            found = self.nn.module_member(owner, name, node)
            if found is not MISSING:
                return found
        dynamic = self.missing_read(owner, name, node)
        if dynamic is not MISSING:
            return dynamic
        if isinstance(base := attributes.get(GUARD), Distribution):
            return self.get_attribute(base, name, node)
        if owner.open or self.has_dynamic_attributes(owner):
            unknown = Unknown(f"attribute {name} set outside what is known")
            attributes[name] = unknown
            return unknown
        if owner.cls.kind == "tuple" and name in ("_replace", "_asdict", "_fields"):
            return Bound(owner, name)
        unknown = self.path.gap(f"attribute {name} was never seen being set", node)
        attributes[name] = unknown
        return unknown

    def has_dynamic_attributes(self, owner: Instance) -> bool:
        return owner.cls.find("__getattr__")[0] is not MISSING

    def super_attribute(self, owner: Super, name: str, node: ast.AST) -> Value:
        receiver = owner.receiver
        cls = receiver.cls if isinstance(receiver, Instance) else owner.owner
        lineage = cls.lineage() if isinstance(cls, ClassValue) else []
        after = lineage[lineage.index(owner.owner) + 1 :] if owner.owner in lineage else lineage
        for position, ancestor in enumerate(after):
            if isinstance(ancestor, ClassValue) and name in ancestor.namespace:
                return self.language.bind_method(ancestor.namespace[name], receiver, cls)
            if (
                name == "__init__"
                and isinstance(ancestor, External)
                and self.nn.is_module_path(ancestor.path)
            ):
                # nn.Module comes before a mixin that does not derive from it, and calls no further.
                later = [other for other in after[position + 1 :] if isinstance(other, ClassValue)]
                if not any(ancestor in other.lineage() for other in later):
                    break
        return Bound(owner, name)

    def class_attribute(self, owner: ClassValue, name: str) -> Value:
        if name == "__name__":
            return owner.name
        if owner.kind == "enum":
            return Unknown("enumeration member")
        return Bound(owner, name)

    def unknown_attribute(self, owner: Unknown, name: str, node: ast.AST) -> Value:
        if owner.tensor is not None:
            return self.autograd.tensor_attribute(owner.tensor, name, node)
        return owner.derived(("attr", name), f"attribute {name} of an unknown value")

    def set_attribute(
        self, owner: Value, name: str, value: Value, node: ast.AST, augmented: bool = False
    ) -> None:
        if not isinstance(owner, Tensor) and isinstance(value, Tensor):
            value.kept_at = self.path.site(node)
        if isinstance(owner, Instance):
            self.set_instance_attribute(owner, name, value, node)
        elif isinstance(owner, Layer):
            self.nn.set_module_attribute(owner, name, value, node)
            owner.attributes[name] = value
        elif isinstance(owner, Tensor):
            self.autograd.set_tensor_attribute(owner, name, value, node, augmented)
        elif isinstance(owner, ClassValue):
            if has_metaclass(owner):
                value = self.path.gap("attribute of a class whose metaclass may change it", node)
            if not self.entry.change_shared(owner, name, value):
                owner.namespace[name] = value
                owner.note_intercepted()
        elif isinstance(owner, Unknown):
            if owner.tensor is not None:
                self.autograd.set_tensor_attribute(owner.tensor, name, value, node, augmented)
                return
            if owner.answers is None:
                owner.answers = {}
            owner.answers[("attr", name)] = value
        elif isinstance(owner, Opaque):
            self.libraries.set_opaque_attribute(owner, name, value, node)
        elif isinstance(owner, PythonModule):
            if owner.namespace.shared:
                self.entry.write_shared(owner.namespace, name, value)
            else:
                owner.namespace[name] = value
        elif isinstance(owner, Function):
            attributes = {**(owner.attributes or {}), name: value}
            if not self.entry.change_shared(owner, "attributes", attributes):
                owner.attributes = attributes
        elif isinstance(owner, AbsentGrad):
            self.autograd.absent_grad_used(owner, node)

    # -- items -------------------------------------------------------------------------------------------------------

    def get_item(self, owner: Value, index: Value, node: ast.AST) -> Value:
        if isinstance(owner, Tensor):
            return self.autograd.tensor_item(owner, index, node)
        if isinstance(owner, Seq):
            item = self.sequence_item(owner, index, node)
            return self.any_item(owner, index, item, node) if self.path.is_watched else item
        if isinstance(owner, Mapping):
            return self.mapping_item(owner, index)
        if isinstance(owner, Layer):
            return self.nn.layer_item(owner, index)
        if isinstance(owner, Instance):
            return self.instance_item(owner, index, node)
        if may_require_grad(owner):
            may_be_held([index])
        if isinstance(owner, Unknown):
            return self.unknown_item(owner, index, node)
        if isinstance(owner, (str, bytes, range)):
            if isinstance(index, int) and -len(owner) <= index < len(owner):
                return owner[index]
            place = known_slice(index)
            if place is not None:
                return owner[place]
            return Unknown("item of a text", "text") if isinstance(owner, str) else Number()
        if isinstance(owner, Array):
            # An index of numbers and slices gives a part of the same memory.
            is_part = isinstance(index, (int, Slice, Number, Unknown))
            return Array(owner.tensor, owner.cuts, whole=(owner.whole or owner) if is_part else None)
        if isinstance(owner, Opaque):
            return self.libraries.opaque_item(owner, index, node)
        if isinstance(owner, ClassValue) and isinstance(made := owner.find("__class_getitem__")[0], Function):
            return self.language.call_function(made, [owner, index], {}, node)
        if isinstance(owner, External) and owner.path == "sys.modules" and index == self.entry.module_name():
            return self.globals_dict(node)
        if isinstance(owner, AbsentGrad):
            self.autograd.absent_grad_used(owner, node)
            return Unknown("item of None")
        return self.path.gap("item of an unknown value", node)

    def instance_item(self, owner: Instance, index: Value, node: ast.AST) -> Value:
        method, _ = owner.cls.find("__getitem__")
        if isinstance(method, Function):
            return self.language.call_function(method, [owner, index], {}, node)
        if owner.cls.kind == "tuple" and isinstance(index, int):
            values = list(owner.attributes.values())
            return values[index] if -len(values) <= index < len(values) else Unknown("index out of range")
        if owner.module is not None and isinstance(index, int):
            return owner.attributes.get(str(index), Unknown("item of a module"))
        if owner.held is not None:
            return self.get_item(owner.held, index, node)
        return self.path.gap("item of an object", node)

    def unknown_item(self, owner: Unknown, index: Value, node: ast.AST) -> Value:
        if owner.tensor is not None:
            return self.autograd.tensor_item(owner.tensor, index, node)
        if (
            isinstance(index, Slice)
            and isinstance(index.start, int)
            and index.stop is None
            and index.start >= 0
        ):
            rest = owner.derived(("from", index.start), "the rest of an unknown value")
            longer = self.language.compare_values(">", self.length_of(owner), index.start, node)
            rest.condition = longer if isinstance(longer, (Unknown, Number)) else None
            return rest
        key = ("item", index if is_constant(index) else id(index))
        if not is_constant(index):
            self.path.kept_alive.append(index)
        return owner.derived(key, "item of an unknown value")

    def set_item(self, owner: Value, index: Value, value: Value, node: ast.AST) -> None:
        self.path.tell(ItemStoring(owner, index, value))
        self.store_item(owner, index, value, node)
        if isinstance(owner, Mapping) and isinstance(value, Tensor):
            self.note_entry(owner, index, value, node)

    def note_entry(self, owner: Mapping, index: Value, value: Tensor, node: ast.AST) -> None:
        storage = value.storage
        site = value.kept_at = self.path.site(node)
        key = self.mapping_key(index)
        self.path.entry_epochs[id(owner), key] = storage.epoch
        storage.stores = [*(storage.stores or []), (id(owner), storage.epoch, site)]
        self.path.kept_alive.append(owner)
        if key is MISSING:
            self.path.stored_somewhere.add(site.key)

    def store_item(self, owner: Value, index: Value, value: Value, node: ast.AST) -> None:
        if isinstance(owner, Tensor):
            self.autograd.write_item(owner, index, value, node)
        elif isinstance(owner, Seq):
            if isinstance(index, int) and owner.exact and -len(owner.items) <= index < len(owner.items):
                owner.items[index] = value
            elif (place := known_slice(index)) is not None:
                iterator, length = self.iterate(value)
                items = list(iterator) if length is None else list(islice(iterator, 256))
                whole = place == slice(None, None, None)
                owner.exact = (owner.exact or whole) and length is not None and length <= 256
                if place.step in (None, 1) or len(owner.items[place]) == len(items):
                    owner.items[place] = items
                else:
                    # A stride takes exactly as many items as it has places; of these not all are known.
                    owner.items.extend(items[:8])
                    owner.exact = False
            else:
                if len(owner.items) >= MOST_STORED:
                    # What is stored last is what is read: a place of the first filling makes room for it.
                    del owner.items[next(places_without_tensors(owner.items), 0)]
                owner.items.append(value)
                owner.exact = False
                if isinstance(index, int):
                    owner.placed = {**(owner.placed or {}), index: value}
        elif isinstance(owner, Mapping):
            self.store_key(owner, index, value)
        elif isinstance(owner, Array):
            is_whole = isinstance(index, Slice) and index.start is index.stop is index.step is None
            self.autograd.write_array(owner, node, "item assignment", [value] if is_whole else None)
        elif isinstance(owner, Layer):
            key = str(index) if isinstance(index, (int, str)) else f"<{id(value)}>"
            value = self.nn.as_entry(owner, value, node)
            self.nn.set_module_attribute(owner, key, value, node)
            owner.attributes[key] = value
            if not isinstance(index, (int, str)):
                owner.options["inexact"] = True
        elif isinstance(owner, Instance):
            method, _ = owner.cls.find("__setitem__")
            if isinstance(method, Function):
                self.language.call_function(method, [owner, index, value], {}, node)
            elif owner.held is not None:
                self.set_item(owner.held, index, value, node)
        elif isinstance(owner, Unknown):
            if owner.tensor is not None:
                self.autograd.write_item(owner.tensor, index, value, node)
            elif owner.answers is not None:
                owner.answers.pop(("item", index if is_constant(index) else id(index)), None)
        elif isinstance(owner, Opaque):
            self.libraries.set_opaque_item(owner, index, value, node)

    # -- methods -----------------------------------------------------------------------------------------------------

    def call_method(
        self, receiver: Value, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """`receiver.name(*args, **kwargs)`."""
        if name == "forward" and isinstance(receiver, (Instance, Layer)) and receiver.module is not None:
            self.path.tell(ForwardCalled(receiver, node))
        if isinstance(receiver, Tensor):
            return self.autograd.tensor_method(receiver, name, args, kwargs, node)
        if isinstance(receiver, External):
            return self.language.call(self.libraries.external_attribute(receiver, name), args, kwargs, node)
        if isinstance(receiver, Instance):
            return self.instance_method(receiver, name, args, kwargs, node)
        if isinstance(receiver, Layer):
            return self.nn.layer_method(receiver, name, args, kwargs, node)
        if isinstance(receiver, Seq):
            return self.sequence_method(receiver, name, args, kwargs, node)
        if isinstance(receiver, Mapping):
            return self.mapping_method(receiver, name, args, kwargs, node)
        if isinstance(receiver, Unknown):
            return self.libraries.unknown_method(receiver, name, args, kwargs, node)
        if isinstance(receiver, Opaque):
            return self.libraries.opaque_method(receiver, name, args, kwargs, node)
        if isinstance(receiver, str):
            return self.text_method(receiver, name, args, kwargs)
        if isinstance(receiver, Super):
            return self.nn.super_method(receiver, name, args, kwargs, node)
        if isinstance(receiver, Array) and name != "backward":
            return self.autograd.array_method(receiver, name, args, kwargs, node)
        if isinstance(receiver, AbsentGrad):
            self.autograd.absent_grad_used(receiver, node)
            return Unknown("method of None")
        if isinstance(receiver, ClassValue):
            return self.class_method(receiver, name, args, kwargs, node)
        if isinstance(receiver, PythonModule):
            return self.language.call(self.get_attribute(receiver, name, node), args, kwargs, node)
        return self.method_of_builtin(receiver, name, args, kwargs, node)

    def method_of_builtin(
        self, receiver: Value, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """Methods of numbers, iterators and functions."""
        if isinstance(receiver, (Number, Array)) and name == "backward":
            proved = frozenset(cut for cut in receiver.cuts if cut.source.needs_grad() is True)
            cuts = proved or self.cut_by_number(node) or read_by(receiver) or receiver.cuts
            if cuts:
                # Python refuses what a tensor without a graph would refuse, for the same reason.
                plain = Tensor(self.path.site(node), shape=())
                plain.cuts = cuts
                return self.autograd.tensor_method(plain, name, args, kwargs, node)
        if isinstance(receiver, (Number, int, float)):
            if name in ("item", "tolist", "real"):
                return receiver
            return Number(cuts_of(receiver))
        if isinstance(receiver, Stream):
            return generator_method(receiver, name, args)
        if isinstance(receiver, (Partial, Function, Method)):
            target = receiver.function if isinstance(receiver, Method) else receiver
            return self.function_method(target, name, args, kwargs, node)
        return self.nn.unknown_result(f"method {name} of an unknown value", args, kwargs, node)

    def cut_by_number(self, node: ast.AST) -> frozenset[Cut]:
        """`loss.item().backward()`, also scaled: wherever the loss comes from, no number has a graph."""
        call = getattr(getattr(node, "func", None), "value", None)
        if isinstance(call, ast.Call) and len(call.args) == 1 and getattr(call.func, "attr", "") == "scale":
            call = call.args[0]
        if (
            not isinstance(call, ast.Call)
            or not isinstance(call.func, ast.Attribute)
            or call.func.attr != "item"
        ):
            return NO_CUTS
        made = Tensor(self.path.site(call.func.value), requires_grad=True)
        made.label = call.func.value.id if isinstance(call.func.value, ast.Name) else ""
        return frozenset({Cut("number", "item", self.path.site(call), made, self.path.tick)})

    def instance_method(
        self, receiver: Instance, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        if name in receiver.attributes:
            return self.language.call(receiver.attributes[name], args, kwargs, node)
        value, _ = receiver.cls.find(name)
        if value is not MISSING:
            return self.language.call(
                self.language.bind_method(value, receiver, receiver.cls), args, kwargs, node
            )
        if receiver.module is not None:
            return self.nn.module_method(receiver, name, args, kwargs, node)
        if receiver.cls.kind == "tuple":
            if name == "_replace":
                copy = Instance(receiver.cls, self.path.site(node))
                copy.attributes = {**receiver.attributes, **kwargs}
                return copy
            if name == "_asdict":
                return Mapping({**receiver.attributes})
        if receiver.held is None or not hasattr(CONTAINER_TYPES[type(receiver.held)], name):
            dynamic = self.missing_read(receiver, name, node)
            if dynamic is not MISSING:
                return self.language.call(dynamic, args, kwargs, node)
        if receiver.held is not None:
            return self.call_method(receiver.held, name, args, kwargs, node)
        guard = self.language.guard_of(receiver, node)
        if guard is not None:
            inherited = self.language.guard_method(receiver, guard, name, args, kwargs, node)
            if inherited is not MISSING:
                return inherited
        return self.nn.unknown_result(
            f"method {name} from outside what is known", [receiver, *args], kwargs, node
        )

    def class_method(
        self, receiver: ClassValue, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        if receiver.kind == "autograd" and name == "apply":
            return self.libraries.apply_custom_function(receiver, args, kwargs, node)
        value, _ = receiver.find(name)
        if isinstance(value, Function):
            if value.binding == "class":
                return self.language.call_function(value, [receiver, *args], kwargs, node)
            return self.language.call_function(value, args, kwargs, node)
        if value is not MISSING:
            return self.language.call(value, args, kwargs, node)
        if name in ("_make",) and args:
            return self.language.instantiate(receiver, list(self.iterate(args[0])[0]), {}, node)
        for ancestor in receiver.lineage():
            if isinstance(ancestor, External) and args and isinstance(args[0], Instance):
                return self.nn.super_method(Super(receiver, args[0]), name, args[1:], kwargs, node)
        return self.nn.unknown_result(f"class method {name} from outside what is known", args, kwargs, node)

    def text_method(self, receiver: str, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name in SAFE_TEXT and not kwargs and all(is_constant(arg) for arg in args):
            try:
                result: Constant | list[str] | tuple[str, ...] = getattr(receiver, name)(*args)
            except Exception:
                return Unknown("text", "text")
            if isinstance(result, (list, tuple)):
                return Seq(TEXT_RESULTS.get(name, "list"), list(result))
            return result
        if name in ("split", "rsplit", "splitlines"):
            return Seq("list", [Unknown("text", "text")], exact=False)
        return Unknown("text", "text")


def has_metaclass(cls: ClassValue) -> bool:
    """Whether the class, or one it derives from, names a metaclass of its own."""
    return any(
        keyword.arg == "metaclass" and not ast.unparse(keyword.value).endswith("ABCMeta")
        for ancestor in cls.lineage()
        if isinstance(ancestor, ClassValue) and ancestor.node is not None
        for keyword in ancestor.node.keywords
    )


def places_without_tensors(items: list[Value]) -> Iterator[int]:
    return (place for place, item in enumerate(items) if not tensors_in(item))
