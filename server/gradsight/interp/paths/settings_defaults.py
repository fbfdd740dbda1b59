"""What the settings of a model are if nobody says otherwise: the defaults in the class of its configuration.

    from .configuration import NetConfig            class NetConfig(BaseConfig):
    ...                                                 attention_dropout: float = 0.0
    self.rate = config.attention_dropout

A question to the syntax trees of classes.  It is asked where a value decides whether anything happens at all; a path does not
take a default for the value.
"""

from __future__ import annotations

import ast

from gradsight.interp.path_state import PathState
from gradsight.model.name_hints import suggests
from gradsight.model.values import ClassValue, Scope, Unknown


def note_setting(path: PathState, value: Unknown, name: str) -> None:
    """A value was read from settings under this name; it brings no graph."""
    value.is_setting = value.graph is None
    path.setting_names[value] = name


def names_of_settings(scope: Scope) -> list[ast.Name]:
    """The names of the file around under which it has classes of settings."""
    while scope.outer is not None:
        scope = scope.outer
    return [
        ast.Name(name, ast.Load())
        for name in scope.names
        if name[:1].isupper() and suggests("class of settings", name)
    ]


def default_in(cls: ClassValue, name: str) -> int | float | None:
    """The number that a field of a class, or an argument of its `__init__`, has by default."""
    for one in cls.lineage():
        body = one.node.body if isinstance(one, ClassValue) and isinstance(one.node, ast.ClassDef) else []
        for statement in body:
            found = None
            if isinstance(statement, (ast.AnnAssign, ast.Assign)):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                    found = number_in(statement.value)
            elif isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                found = default_of(statement.args, name)
            if found is not None:
                return found
    return None


def default_of(signature: ast.arguments, name: str) -> int | float | None:
    """The number that an argument has by default."""
    positional = [*signature.posonlyargs, *signature.args]
    defaults = dict(zip([one.arg for one in reversed(positional)], reversed(signature.defaults)))
    named = {
        one.arg: value for one, value in zip(signature.kwonlyargs, signature.kw_defaults) if value is not None
    }
    return number_in((defaults | named).get(name))


def number_in(node: ast.expr | None) -> int | float | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
