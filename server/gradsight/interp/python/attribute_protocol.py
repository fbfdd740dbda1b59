"""The attribute protocol: properties, descriptors, `__setattr__`, `__getattribute__`, and getting around them.

*Intercepted* are the names whose reading or setting a class has in its own hands, before the attributes of its objects.
"""

from __future__ import annotations

import ast

from gradsight.interp.python.namespaces import REGISTRIES, Namespaces
from gradsight.model.tensors import Tensor
from gradsight.model.values import MISSING, Function, Instance, Layer, Mapping, Super, Unknown, Value


class AttributeProtocol(Namespaces):
    """What happens when an attribute of an object is asked for, set or deleted."""

    # -- reading -----------------------------------------------------------------------------------------------------

    def intercepted_read(self, owner: Instance, name: str, node: ast.AST) -> Value:
        """The value that `__getattribute__` or a data descriptor gives; MISSING when the attributes decide."""
        if "__getattribute__" in owner.cls.intercepts:
            method, _ = owner.cls.find("__getattribute__")
            if isinstance(method, Function):
                return self.language.call_function(method, [owner, name], {}, node)
        return self.descriptor_read(owner, name)

    def descriptor_read(self, owner: Instance, name: str) -> Value:
        if name not in owner.cls.intercepts:
            return MISSING
        return self.language.bind_method(owner.cls.find(name)[0], owner, owner.cls)

    def missing_read(self, owner: Instance, name: str, node: ast.AST) -> Value:
        """The value that `__getattr__` of the analysed code gives; that of a module asks nn.Module first."""
        method, _ = owner.cls.find("__getattr__")
        if owner.module is not None or method is MISSING or name.startswith("__"):
            return MISSING
        if isinstance(method, Function):
            return self.language.call_function(method, [owner, name], {}, node)
        # `__getattr__ = dict.__getitem__`
        return self.get_item(owner.held, name, node) if isinstance(owner.held, Mapping) else MISSING

    # -- setting and deleting ----------------------------------------------------------------------------------------

    def set_instance_attribute(self, owner: Instance, name: str, value: Value, node: ast.AST) -> None:
        if "__setattr__" in owner.cls.intercepts:
            method, _ = owner.cls.find("__setattr__")
            if isinstance(method, Function):
                self.language.call_function(method, [owner, name, value], {}, node)
                return
            if isinstance(owner.held, Mapping):
                # `__setattr__ = dict.__setitem__`
                self.set_item(owner.held, name, value, node)
                return
        self.set_past_hook(owner, name, value, node)

    def set_past_hook(
        self, owner: Instance, name: str, value: Value, node: ast.AST, registers: bool = True
    ) -> None:
        """What `__setattr__` of `object`, or of nn.Module, does; that of `object` registers nothing."""
        if name in owner.cls.intercepts:
            found, _ = owner.cls.find(name)
            if isinstance(found, Function):
                if isinstance(found.setter, Function):
                    self.language.call_function(found.setter, [owner, value], {}, node)
                return
            setter = found.cls.find("__set__")[0] if isinstance(found, Instance) else None
            if isinstance(setter, Function):
                self.language.call_function(setter, [found, owner, value], {}, node)
            return
        if name == "__dict__":
            self.replace_attributes(owner, value)
            return
        if name in REGISTRIES and owner.module is not None:
            self.replace_registry(owner, name, value, node)
            return
        if owner.module is not None and registers:
            self.nn.set_module_attribute(owner, name, value, node)
        owner.attributes[name] = value
        if isinstance(value, Tensor):
            value.kept_at = self.path.site(node)
            if not value.label:
                value.label = f"self.{name}" if is_self(node) else name

    def delete_attribute(self, owner: Value, name: str, node: ast.AST) -> None:
        """`del owner.name`."""
        if isinstance(owner, Instance) and owner.cls.intercepts:
            method, _ = owner.cls.find("__delattr__")
            if isinstance(method, Function):
                self.language.call_function(method, [owner, name], {}, node)
                return
        self.delete_past_hook(owner, name, node)

    def delete_past_hook(self, owner: Value, name: str, node: ast.AST) -> None:
        if isinstance(owner, Instance) and name in owner.cls.intercepts:
            found, _ = owner.cls.find(name)
            if isinstance(found, Function):
                if isinstance(found.deleter, Function):
                    self.language.call_function(found.deleter, [owner], {}, node)
                return
            deleter = found.cls.find("__delete__")[0] if isinstance(found, Instance) else None
            if isinstance(deleter, Function):
                self.language.call_function(deleter, [found, owner], {}, node)
            return
        if isinstance(owner, (Instance, Layer)):
            owner.attributes.pop(name, None)

    def object_method(self, name: str, args: list[Value], node: ast.AST, registers: bool = False) -> Value:
        """`object.__setattr__(owner, name, value)` and kin; MISSING for other methods."""
        if not args or not isinstance(args[0], Instance):
            return MISSING
        owner = args[0]
        if name not in ("__setattr__", "__getattribute__", "__getattr__", "__delattr__") or len(args) < 2:
            return MISSING
        if not isinstance(args[1], str):
            owner.open = True
            return Unknown("attribute under an unknown name")
        if name == "__setattr__":
            if len(args) == 3:
                self.set_past_hook(owner, args[1], args[2], node, registers)
            return None
        if name == "__delattr__":
            self.delete_past_hook(owner, args[1], node)
            return None
        found = self.descriptor_read(owner, args[1])
        return found if found is not MISSING else self.stored_attribute(owner, args[1], node)

    def inherited_method(self, receiver: Super, name: str, args: list[Value], node: ast.AST) -> Value:
        """`super().__setattr__(name, value)` and kin where the base is `object` or nn.Module."""
        return self.object_method(name, [receiver.receiver, *args], node, registers=True)


def is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
