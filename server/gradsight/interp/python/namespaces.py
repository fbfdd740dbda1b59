"""Dicts that stand for names: `__dict__` and `vars`, a module's `_buffers` and kin, `globals()`.

*Behind* a dict is the object whose attributes it holds: what is put into the dict or taken out is set or deleted there.
"""

from __future__ import annotations

import ast

from gradsight.interp.option_defaults import usual_name
from gradsight.interp.python.containers import Containers
from gradsight.interp.python.picked_members import RANK_OF_THE_REST, rank
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.library_objects import GlobalNames
from gradsight.model.sites import Frame
from gradsight.model.tensors import Tensor
from gradsight.model.trace import AttributeSet
from gradsight.model.values import (
    MISSING,
    Instance,
    Mapping,
    Module,
    Scope,
    Unknown,
    Value,
    module_state,
)

REGISTRIES = {"_parameters": "parameter", "_buffers": "buffer", "_modules": "module"}


class Namespaces(Containers):
    """Attributes and global names, reached through a dict."""

    # -- attributes --------------------------------------------------------------------------------------------------

    def attributes_dict(self, owner: Module) -> Mapping:
        """`vars(owner)`; what a module has registered is kept elsewhere."""
        if isinstance(owner, Instance) and owner.module is None:
            shared = Mapping(owner.attributes, not owner.open)
            shared.behind = (owner, "shared")
            return shared
        registered = module_state(owner).registered
        own = {
            name: value
            for name, value in owner.attributes.items()
            if name not in registered and not name.startswith("<")
        }
        own.update((name, self.registry(owner, name)) for name in REGISTRIES)
        mapping = Mapping(own, not getattr(owner, "open", False))
        mapping.behind = (owner, "")
        return mapping

    def registry(self, owner: Module, name: str) -> Mapping:
        """`owner._buffers`, `owner._parameters` or `owner._modules`."""
        kind = REGISTRIES[name]
        mapping = Mapping(
            {
                key: owner.attributes[key]
                for key, what in module_state(owner).registered.items()
                if what == kind and key in owner.attributes
            }
        )
        mapping.behind = (owner, kind)
        return mapping

    def replace_attributes(self, owner: Instance, value: Value) -> None:
        """`owner.__dict__ = value`: a dict that several objects may share."""
        if value is owner and isinstance(owner.held, Mapping):
            # `self.__dict__ = self`, of a dict whose items are its attributes.
            value = owner.held
        if isinstance(value, Mapping) and value.exact and owner.module is None:
            owner.attributes = value.items
            return
        owner.open = True
        for name in owner.attributes if owner.module is None else ():
            owner.attributes[name] = Unknown(f"attribute {name} of a replaced __dict__")

    def replace_registry(self, owner: Module, name: str, value: Value, node: ast.AST) -> None:
        """`owner._modules = value`; after `|=` that is the dict that was there."""
        if isinstance(owner, Instance) and (not isinstance(value, Mapping) or not value.exact):
            owner.open = True
        if isinstance(value, Mapping) and value.behind != (owner, REGISTRIES[name]):
            current = self.registry(owner, name)
            before = dict(current.items)
            current.items = dict(value.items)
            self.mirror(current, before, node)

    def store_key(self, mapping: Mapping, key: Value, value: Value) -> None:
        before = dict(mapping.items) if mapping.behind is not None else {}
        super().store_key(mapping, key, value)
        if mapping.behind is not None:
            self.mirror(mapping, before, self.path.node)

    def delete_key(self, mapping: Mapping, key: Value) -> None:
        before = dict(mapping.items) if mapping.behind is not None else {}
        super().delete_key(mapping, key)
        if mapping.behind is not None:
            self.mirror(mapping, before, self.path.node)

    def mapping_method(
        self, receiver: Mapping, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        if receiver.behind is None:
            return super().mapping_method(receiver, name, args, kwargs, node)
        before = dict(receiver.items)
        result = super().mapping_method(receiver, name, args, kwargs, node)
        self.mirror(receiver, before, node)
        return result

    def mirror(self, mapping: Mapping, before: dict[Value, Value], node: ast.AST) -> None:
        """What changed in the dict changes in the object behind it."""
        owner, kind = mapping.behind
        if (mapping.rest or not mapping.exact) and isinstance(owner, Instance):
            owner.open = True
        changed = {
            key: value for key, value in mapping.items.items() if before.get(key, MISSING) is not value
        }
        for key, value in changed.items():
            if isinstance(value, Tensor):
                value.kept_at = self.path.site(node)
                if not value.label:
                    value.label = str(key)
            if kind != "shared":
                old = owner.attributes.get(key, MISSING)
                owner.attributes[key] = value
                if kind:
                    owner.module.registered[key] = kind
                    self.path.tell(AttributeSet(owner, key, value, old, node))
        for key in before if kind != "shared" else ():
            if key not in mapping.items:
                owner.attributes.pop(key, None)
                owner.module.registered.pop(key, None)

    # -- global names ------------------------------------------------------------------------------------------------

    def names_executed(self, text: Value, node: ast.AST) -> None:
        """`exec(text)` at the top of a module: the names that the text binds, or any name, are no longer known."""
        try:
            tree = ast.parse(text) if isinstance(text, str) else None
        except (SyntaxError, ValueError):
            tree = None
        if tree is None:
            self.write_global(None, None, node)
            return
        for part in syntax_parts(tree):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                self.write_global(part.id, self.path.gap("bound by text that is executed", node), node)

    def globals_dict(self, node: ast.AST) -> GlobalNames:
        return GlobalNames("globals()", self.path.site(node))

    def builtin_globals(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return self.globals_dict(node)

    def builtin_locals(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        """The locals of a function are a copy, those of a module its globals."""
        if self.path.frame.function is None and self.path.frame.name != "<class>":
            return self.globals_dict(node)
        return Mapping(dict(self.path.frame.namespace))

    def outermost_scope(self) -> Scope:
        scope: Scope = self.path.frame.scope
        while scope.outer is not None:
            scope = scope.outer
        return scope

    def read_global(self, name: Value, node: ast.AST) -> Value:
        scope = self.outermost_scope()
        if not isinstance(name, str):
            name = self.picked_global(name, scope.names)
        if not name:
            return self.path.gap("global under an unknown name", node)
        previous = self.path.enter(
            Frame("<module>", self.path.frame.unit, scope.names, scope, 0, self.path.numbering)
        )
        try:
            return self.language.load_name(ast.copy_location(ast.Name(name, ast.Load()), node))
        finally:
            self.path.frame = previous

    def picked_global(self, name: Value, names: dict[str, Value]) -> str:
        """The name of what `globals()[name]` with an unknown name gives: what makes something, if the file has it."""
        usual = usual_name(self.path.options, self.path.setting_names, name)
        if usual in names:
            return usual
        path = self.path.frame.unit.path
        return next((one for one in names if rank(names[one], path) < RANK_OF_THE_REST), "")

    def write_global(self, name: Value, value: Value, node: ast.AST) -> None:
        """A name that is not known may be any: what tensors the module holds is not known from there on."""
        if isinstance(name, str):
            if isinstance(value, Tensor) and not value.label:
                value.label = name
            self.language.bind_global(name, value)
            return
        for known, current in list(self.outermost_scope().names.items()):
            if isinstance(current, Tensor):
                self.language.bind_global(known, self.path.gap("global that may have been replaced", node))

    def globals_method(self, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        if name in ("get", "__getitem__", "setdefault") and args:
            names = self.outermost_scope().names
            if len(args) > 1 and isinstance(args[0], str) and args[0] not in names:
                if name == "setdefault":
                    self.write_global(args[0], args[1], node)
                return args[1]
            return self.read_global(args[0], node)
        if name == "__setitem__" and len(args) == 2:
            self.write_global(args[0], args[1], node)
            return None
        if name == "update":
            for source in args:
                for key, value in source.items.items() if isinstance(source, Mapping) else ():
                    self.write_global(key, value, node)
                if not (isinstance(source, Mapping) and source.exact):
                    self.write_global(None, None, node)
            for key, value in kwargs.items():
                self.write_global(key, value, node)
            return None
        return Unknown(f"{name} of the global names")
