"""Arms of a method that only objects with other options than the defaults of their class go into.

    class Attention(nn.Module):
        def __init__(self, width, use_bias=False):
            self.use_bias = use_bias
            ...
        def forward(self, x):
            if self.use_bias:                   # decided where the object is made: no path of `forward` goes there
                weights += self.bias

An object made by defaults shows one of the two ways.  The method is executed once more on one whose options of that kind are not
known, so that the arm gets its path like any other.  A question to the syntax trees: *option*: a parameter of `__init__` whose
default is a constant, or None; *behind* a condition: it is read by the statements that give the attribute its value.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from gradsight.interp.paths.call_graph import summary_of
from gradsight.interp.paths.unused_defaults import defaults_of
from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import parts_of
from gradsight.model.values import ClassValue, Function, Unknown, Value

HINTS = {bool: "bool", str: "text", int: "number", float: "number"}


def methods_with_options(
    classes: list[ClassValue], met: Collection[ast.AST]
) -> Iterator[tuple[ClassValue, Function, dict[str, Value]]]:
    """The methods of modules that have such arms, and the options behind them; `met`: conditions that paths have decided."""
    for cls in classes:
        for method in list(cls.namespace.values()) if cls.kind == "module" else []:
            if isinstance(method, Function) and method.defined().unit is cls.unit:
                options = options_behind_arms(cls, method, met)
                if options:
                    yield cls, method, options


def options_behind_arms(cls: ClassValue, method: Function, met: Collection[ast.AST]) -> dict[str, Value]:
    """The options that decide about arms of a method which do something."""
    init, _ = cls.find("__init__")
    if not isinstance(init, Function) or isinstance(init.defined().node, ast.Lambda):
        return {}
    made_of = remembered(init.defined().node, "options of attributes", _options_of_attributes)
    found: dict[str, Value] = {}
    for condition in parts_of(method.defined().node, ast.If):
        if condition in met or not any(
            summary_of(one).reasons for one in [*condition.body, *condition.orelse]
        ):
            continue
        for name in attributes_read(condition.test):
            for option, hint in made_of.get(name, {}).items():
                found[option] = Unknown(f"argument {option}", hint)
    return found


def attributes_read(test: ast.AST) -> set[str]:
    """The attributes of `self` that an expression reads."""
    return {
        part.attr
        for part in parts_of(test, ast.Attribute)
        if isinstance(part.value, ast.Name) and part.value.id == "self"
    }


def _options_of_attributes(init: ast.AST) -> dict[str, dict[str, str]]:
    """Of each attribute that `__init__` gives a value: the options that this value is made of, and what kind they are."""
    hints = {
        name: HINTS.get(type(default.value), "")
        for name, default in defaults_of(init)
        if isinstance(default, ast.Constant)
    }
    found: dict[str, dict[str, str]] = {}
    for statement in parts_of(init, ast.Assign):
        read = {part.id for part in parts_of(statement.value, ast.Name)}
        options = {name: hints[name] for name in hints if name in read}
        for target in statement.targets:
            if isinstance(target, ast.Attribute) and options and is_flag(statement.value):
                found.setdefault(target.attr, {}).update(options)
    return found


def is_flag(value: ast.expr) -> bool:
    """Whether an attribute holds an option itself, or what is asked of it: `exists(radius)`, `heads > 1`, `drop or None`."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and len(value.args) == 1 and not value.keywords
    return isinstance(value, (ast.Name, ast.Compare, ast.BoolOp, ast.UnaryOp))
