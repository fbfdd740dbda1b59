"""Classes of the analysed code: their bodies, their kinds, and who hears of them."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.python.expressions import Expressions
from gradsight.model.sites import Frame
from gradsight.model.values import MISSING, ClassValue, External, Function, Instance, Scope, Value

EXCEPTIONS = ("Error", "Exception", "Warning", "Interrupt", "StopIteration", "Exit")


class ClassMaking(Expressions):
    """Making classes."""

    def make_class(self, node: ast.ClassDef, bases: list[Value]) -> ClassValue:
        namespace: dict[str, Any] = {}
        cls = ClassValue(node.name, bases, namespace, "plain")
        cls.node = node
        cls.unit = self.path.frame.unit
        cls.kind = self.class_kind(bases)
        scope = Scope(namespace, self.closure_scope())
        frame = Frame(
            "<class>", self.path.frame.unit, namespace, scope, self.path.frame.depth, self.path.numbering
        )
        frame.call_site = self.path.frame.call_site
        frame.guards = self.path.frame.guards
        previous = self.path.enter(frame)
        first = len(self.class_functions)
        try:
            self.execute(node.body)
        finally:
            self.path.frame = previous
        for function in self.class_functions[first:]:
            function.owner = function.owner or cls
        del self.class_functions[first:]
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                name = statement.target.id
                cls.fields.append((name, namespace.get(name, MISSING)))
        self.take_members(cls)
        if cls.kind == "plain" and "forward" in namespace and self.nn.is_module_by_text(node, bases):
            cls.kind = "module"
        self.tell_base(cls, node)
        return cls

    def class_of_parts(self, name: str, bases: list[Value], namespace: dict[Any, Value]) -> Value:
        """`type(name, bases, namespace)`."""
        cls = ClassValue(name, bases, namespace, self.class_kind(bases))
        self.take_members(cls)
        return cls

    def tell_base(self, cls: ClassValue, node: ast.ClassDef) -> None:
        """`__init_subclass__` of a base hears of every class that derives from it: registries are filled there."""
        for base in cls.bases:
            told, _ = base.find("__init_subclass__") if isinstance(base, ClassValue) else (MISSING, None)
            if isinstance(told, Function):
                named = {
                    keyword.arg: self.evaluate(keyword.value) for keyword in node.keywords if keyword.arg
                }
                named.pop("metaclass", None)
                self.call(told, [cls], named, node)
                return

    def take_members(self, cls: ClassValue) -> None:
        """What a class does with the values of its body: functions are its own, descriptors learn their names."""
        cls.note_intercepted()
        for name, value in cls.namespace.items():
            if isinstance(value, Function):
                for piece in value.pieces():
                    if piece.owner is None:
                        piece.owner = cls
                for _, overload in value.overloads or ():
                    if isinstance(overload, Function) and overload.owner is None:
                        overload.owner = cls
                if value.binding == "cached":
                    value.name = name
            elif isinstance(value, Instance):
                told, _ = value.cls.find("__set_name__")
                if isinstance(told, Function):
                    self.call(told, [value, cls, name], {}, self.path.node)

    def class_kind(self, bases: list[Value]) -> str:
        for base in bases:
            if isinstance(base, ClassValue):
                if base.kind != "plain":
                    return base.kind
            elif isinstance(base, External):
                path = base.path
                if kind := self.nn.kind_of_base(path):
                    return kind
                if path == "typing.NamedTuple":
                    return "tuple"
                if path.startswith("enum."):
                    return "enum"
                if path.startswith("builtins.") and path.endswith(EXCEPTIONS):
                    return "exception"
        return "plain"
