"""Classes of the analysed code: their bodies, their kinds, and who hears of them."""

from __future__ import annotations

import ast
from typing import Any, Protocol

from gradsight.interp.path_state import PathState
from gradsight.model.sites import Frame
from gradsight.model.values import MISSING, ClassValue, External, Function, Instance, Scope, Value

EXCEPTIONS = ("Error", "Exception", "Warning", "Interrupt", "StopIteration", "Exit")


class ClassLanguage(Protocol):
    """What is needed of the language that executes the body of a class."""

    path: PathState
    nn: Any
    class_functions: list[Function]

    def evaluate(self, node: Any) -> Value: ...

    def execute(self, body: list[ast.stmt]) -> Any: ...

    def closure_scope(self) -> Scope | None: ...

    def call(self, function: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value: ...


def made_class(language: ClassLanguage, node: ast.ClassDef, bases: list[Value]) -> ClassValue:
    namespace: dict[str, Any] = {}
    cls = ClassValue(node.name, bases, namespace, "plain")
    cls.node = node
    cls.unit = language.path.frame.unit
    cls.kind = class_kind(language, bases)
    scope = Scope(namespace, language.closure_scope())
    frame = Frame(
        "<class>",
        language.path.frame.unit,
        namespace,
        scope,
        language.path.frame.depth,
        language.path.numbering,
    )
    frame.call_site = language.path.frame.call_site
    frame.guards = language.path.frame.guards
    previous = language.path.enter(frame)
    first = len(language.class_functions)
    try:
        language.execute(node.body)
    finally:
        language.path.frame = previous
    for function in language.class_functions[first:]:
        function.owner = function.owner or cls
    del language.class_functions[first:]
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            cls.fields.append((name, namespace.get(name, MISSING)))
    take_members(language, cls)
    if cls.kind == "plain" and "forward" in namespace and language.nn.is_module_by_text(node, bases):
        cls.kind = "module"
    tell_base(language, cls, node)
    return cls


def class_of_parts(
    language: ClassLanguage, name: str, bases: list[Value], namespace: dict[Any, Value]
) -> Value:
    """`type(name, bases, namespace)`."""
    cls = ClassValue(name, bases, namespace, class_kind(language, bases))
    take_members(language, cls)
    return cls


def tell_base(language: ClassLanguage, cls: ClassValue, node: ast.ClassDef) -> None:
    """`__init_subclass__` of a base hears of every class that derives from it: registries are filled there."""
    for base in cls.bases:
        told, _ = base.find("__init_subclass__") if isinstance(base, ClassValue) else (MISSING, None)
        if isinstance(told, Function):
            named = {
                keyword.arg: language.evaluate(keyword.value) for keyword in node.keywords if keyword.arg
            }
            named.pop("metaclass", None)
            language.call(told, [cls], named, node)
            return


def take_members(language: ClassLanguage, cls: ClassValue) -> None:
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
                language.call(told, [value, cls, name], {}, language.path.node)


def class_kind(language: ClassLanguage, bases: list[Value]) -> str:
    for base in bases:
        if isinstance(base, ClassValue):
            if base.kind != "plain":
                return base.kind
        elif isinstance(base, External):
            path = base.path
            kind: str = language.nn.kind_of_base(path)
            if kind:
                return kind
            if path == "typing.NamedTuple":
                return "tuple"
            if path.startswith("enum."):
                return "enum"
            if path.startswith("builtins.") and path.endswith(EXCEPTIONS):
                return "exception"
    return "plain"
