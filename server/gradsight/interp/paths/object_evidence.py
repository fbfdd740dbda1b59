"""What is known of objects that stand for unknown values, and of what those are asked for."""

from __future__ import annotations

import ast

from gradsight.interp.library_places import is_of_library
from gradsight.interp.paths.held_names import is_applied_by_class, is_module
from gradsight.interp.paths.placeholders import is_placeholder, is_value_used
from gradsight.interp.paths.roles import OF_LEAVES, is_settings_name, key_of, may_train, writes_through_data
from gradsight.interp.paths.settings_defaults import note_setting
from gradsight.interp.paths.thawing import thaw
from gradsight.interp.paths.unknown_graphs import UnknownGraphsObjects, indexes_tensor
from gradsight.model.trace import GradRead
from gradsight.model.values import MISSING, Instance, Layer, Unknown, Value

ASKED_OF_TENSORS = {"shape", "dtype", "device", "ndim", "T", "mT", "data", "requires_grad"}
"""Attributes that tell that an argument is a tensor."""
OF_RESULTS = {"data", "grad", "grad_fn"}
"""Attributes that tell that what a module returns is one."""


class EvidenceObjects(UnknownGraphsObjects):
    """What Evidence adds to objects."""

    def instance_method(
        self, receiver: Instance, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """An object that a method is executed on by itself stands for all objects of classes that derive from its class."""
        if self.path.isolated and receiver.module is None and name not in receiver.attributes:
            method, _ = receiver.cls.find(name)
            is_left = method is MISSING and receiver.cls.has_unknown_base()
            if is_left or is_placeholder(method, is_value_used(node, self.path.frame)):
                if not may_train(name):
                    return self.entry.filled_in_elsewhere(receiver, name, args, kwargs, node)
        return super().instance_method(receiver, name, args, kwargs, node)

    def unknown_attribute(self, owner: Unknown, name: str, node: ast.AST) -> Value:
        if name in OF_RESULTS and self.entry.is_returned(owner):
            self.entry.tensor_of(owner)
        elif owner.tensor is None or name in OF_LEAVES:
            stand_in = self.entry.stand_in_for(owner, getattr(node, "value", None))
            if stand_in is not None:
                return self.get_attribute(stand_in, name, node)
            if owner.graph is not None and name in OF_LEAVES:
                return owner.derived(("attr", name), f"{name} of a value of unknown code", "bool")
        if owner.argument and self.path.assuming and owner.tensor is None and name in ASKED_OF_TENSORS:
            self.entry.assumed_tensor(owner)
        elif name == "data" and owner.graph is not None and self.is_written_through(node):
            self.entry.tensor_of(owner)
        elif name == "grad" and isinstance(owner.part_of, Layer):
            # `model.fc.weight.grad`: of a weight that the one of the unknown module stands for.
            for _, weight in self.nn.tensors_of(owner.part_of, "parameter"):
                self.path.tell(GradRead(weight, self.path.site(node), None))
        found = super().unknown_attribute(owner, name, node)
        if type(found) is Unknown and name == "data" and found.graph is not None:
            # That of a tensor has no graph, and that of a packed sequence has one.
            found.graph, found.carries = None, True
        if type(found) is Unknown and is_settings_name(key_of(getattr(node, "value", None))):
            note_setting(self.path, found, name)
        return found

    def is_written_through(self, node: ast.AST) -> bool:
        """Whether what stands behind this `.data` is written: then it is that of a tensor, and of no packed sequence."""
        function = self.path.frame.function
        return function is not None and node in writes_through_data(function.node)

    def set_attribute(
        self, owner: Value, name: str, value: Value, node: ast.AST, augmented: bool = False
    ) -> None:
        super().set_attribute(owner, name, value, node, augmented)
        known = self.entry.known_stand_in(owner)
        if known is None and isinstance(value, bool) and "grad" in name and type(owner) is Unknown:
            # A module has no such flag, and a tensor has: what is it?
            known = self.entry.stand_in_for(owner, getattr(node, "value", None))
        if isinstance(known, Layer) and (isinstance(value, bool) or is_module(value)):
            # A new part learns, and the whole applies it.
            self.nn.set_module_attribute(known, name, value, node)
            known.attributes[name] = value

    def stored_attribute(self, owner: Instance, name: str, node: ast.AST) -> Value:
        is_new = name not in owner.attributes
        found = super().stored_attribute(owner, name, node)
        if is_new and type(found) is Unknown and owner.module is not None:
            if is_of_library(owner.cls) or (owner.open and is_applied_by_class(owner.cls, name)):
                found.part_of = owner
        if type(found) is Unknown and is_settings_name(key_of(getattr(node, "value", None))):
            note_setting(self.path, found, name)
        return found

    def builtin_getattr(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        """`getattr(model, model.base_model_prefix)`: some part of a network of a library."""
        owner = args[0] if len(args) == 2 and not isinstance(args[1], str) else None
        thaw([self.entry.known_stand_in(owner)])
        if isinstance(owner, Instance) and owner.module is not None and is_of_library(owner.cls):
            part = Unknown("part of a module of a library")
            part.part_of = owner
            return part
        return super().builtin_getattr(args, kwargs, node)

    def get_item(self, owner: Value, index: Value, node: ast.AST) -> Value:
        if type(owner) is Unknown and owner.tensor is None and indexes_tensor(index):
            if owner.graph is not None or owner.plain or (owner.argument and self.path.assuming):
                self.entry.assumed_tensor(owner)
        elif type(owner) is Layer and "stand in" in owner.options and not owner.attributes.get(str(index)):
            thaw([owner])
            parts: dict[int | str, Unknown] = owner.options.setdefault("parts", {})
            known = parts.get(index) if isinstance(index, (int, str)) else None
            if known is None:
                known = Unknown("item of an unknown module")
                known.part_of = owner
                if isinstance(index, (int, str)):
                    parts[index] = known
            return known
        return super().get_item(owner, index, node)
