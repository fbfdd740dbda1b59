"""Functions as objects: pieces of a property, caches that are cleared, overloads chosen by type."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.python.attribute_protocol import AttributeProtocol
from gradsight.model.tensors import Tensor
from gradsight.model.values import Bound, ClassValue, External, Function, Number, Partial, Seq, Unknown, Value

PIECES = {"getter", "setter", "deleter"}
ABSTRACT = ("collections.", "typing.", "numbers.")
"""Libraries of types that values belong to without being made by them."""


class FunctionObjects(AttributeProtocol):
    """Attributes and methods of functions."""

    def function_attribute(self, function: Function, name: str) -> Value:
        stored = function.attributes
        if stored and name in stored:
            return stored[name]
        if (
            (name in PIECES and function.binding == "property")
            or (name == "register" and function.overloads is not None)
            or (name in ("cache_clear", "cache_info") and function.remembers)
        ):
            return Bound(function, name)
        return Unknown("attribute of a function", "text" if name == "__name__" else "")

    def function_method(
        self, function: Value, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        if isinstance(function, Function):
            if name in PIECES and function.binding == "property" and args:
                return self.with_piece(function, name, args[0])
            if name == "register" and function.overloads is not None and args:
                return self.register_overload(function, args)
            if name == "cache_clear" and function.remembers:
                for call in [call for call in self.language.results if call[0] == id(function.node)]:
                    del self.language.results[call]
                return None
            if name == "cache_info" and function.remembers:
                size = sum(call[0] == id(function.node) for call in self.language.results)
                told = Seq("tuple", [Number(), Number(), function.most_remembered, size])
                told.fields = ("hits", "misses", "maxsize", "currsize")
                return told
            if name == "__call__":
                return self.language.call_function(function, args, kwargs, node)
            stored = function.attributes
            if stored and name in stored:
                return self.language.call(stored[name], args, kwargs, node)
        self.nn.escape(args, kwargs)
        return Unknown("method of a function")

    # -- properties --------------------------------------------------------------------------------------------------

    def with_piece(self, function: Function, name: str, piece: Value) -> Value:
        """`@value.setter`: a new property, which has the other pieces of the old one."""
        if name == "getter":
            if not isinstance(piece, Function):
                return Unknown("a property of an unknown function")
            made = piece.copy()
            made.binding, made.setter, made.deleter = "property", function.setter, function.deleter
            return made
        made = function.copy()
        setattr(made, name, piece)
        return made

    def builtin_property(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        """`property(read, write, delete)`."""
        given = dict(zip(("fget", "fset", "fdel"), args)) | kwargs
        read = given.get("fget")
        if not isinstance(read, Function):
            return self.nn.unknown_result("a property of an unknown function", args, kwargs, node)
        made = read.copy()
        made.binding, made.setter, made.deleter = "property", given.get("fset"), given.get("fdel")
        return made

    # -- overloads ---------------------------------------------------------------------------------------------------

    def register_overload(self, function: Function, args: list[Value]) -> Value:
        """`@function.register`, with the type as an argument or as an annotation; gives back what it registers."""
        if len(args) == 1 and not isinstance(args[0], Function):
            return Partial(Bound(function, "register"), args, {})
        overload = args[-1]
        kind: Value = args[0] if len(args) > 1 else None
        if len(args) == 1 and isinstance(overload, Function):
            kind = self.annotated_type(overload, function.dispatch_on)
        overloads = [*(function.overloads or ()), (kind, overload)]
        if not self.entry.change_shared(function, "overloads", overloads):
            function.overloads = overloads
        return overload

    def annotated_type(self, function: Function, position: int) -> Value:
        signature = function.node.args
        parameters = [*signature.posonlyargs, *signature.args]
        annotation = parameters[position].annotation if position < len(parameters) else None
        return (
            self.language.evaluate(annotation) if annotation is not None else Unknown("type of an overload")
        )

    def overload_for(self, function: Function, args: list[Value]) -> Value:
        """The function that is executed for these arguments, or None where their types do not tell."""
        if function.dispatch_on >= len(args):
            return None
        value = args[function.dispatch_on]
        fitting: list[tuple[Any, Any]] = []
        for kind, overload in function.overloads or ():
            outcome = self.is_instance(value, kind)
            if (
                isinstance(kind, External)
                and kind.path.startswith(ABSTRACT)
                and not isinstance(value, Tensor)
            ):
                outcome = None
            if outcome is None:
                return None
            if outcome:
                fitting.append((kind, overload))
        if not fitting:
            return function.plain()
        best = [one for one in fitting if all(self.is_narrower(one[0], kind) for kind, _ in fitting)]
        return best[-1][1] if best else None

    def is_narrower(self, kind: Value, other: Value) -> bool:
        """Whether a type is the other one or derives from it."""
        if kind == other:
            return True
        if isinstance(kind, ClassValue):
            return other in kind.lineage() or other == External("builtins.object")
        return isinstance(other, External) and (
            other.path == "builtins.object"
            or (isinstance(kind, External) and self.nn.derives(kind.path, other.path))
        )
