"""By which names code outside of a helper holds what the helper was given, and what is held beside it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from gradsight.interp.paths.roles import deeds_of, is_follower_name, key_of
from gradsight.interp.syntax import is_inside, remembered
from gradsight.interp.syntax_parts import parts_of
from gradsight.model.name_hints import BY_NAME
from gradsight.model.sites import Frame
from gradsight.model.values import ClassValue, Function, Instance, Layer, Unknown, Value


def key_outside(frame: Frame, value: Unknown, key: str) -> str:
    """How the outermost code that has a name for a value spells it: a helper's `model` is the caller's `self.generator`."""
    inner: Frame | None = frame
    while inner is not None:
        receiver = inner.receiver
        if isinstance(receiver, Instance):
            held = next((name for name, one in receiver.attributes.items() if one is value), "")
            key = f"self.{held}" if held else key
        if inner.function is not None and "." not in key:
            key = next((name for name, one in inner.namespace.items() if one is value), key)
        inner = inner.call_site.frame if inner.call_site is not None else None
    return key


def own_modules(frame: Frame, key: str) -> list[tuple[str, Layer | Instance]]:
    """The modules that an object has beside its optimizer, or that a function was given with it, by their keys."""
    receiver = frame.receiver
    if "." not in key:
        beside = frame.namespace if frame.function is not None else {}
    else:
        beside = receiver.attributes if isinstance(receiver, Instance) else {}
    return [
        (f"self.{name}" if "." in key else name, value)
        for name, value in beside.items()
        if isinstance(value, Layer) or (isinstance(value, Instance) and value.module is not None)
    ]


def is_module(value: Value) -> bool:
    return isinstance(value, (Layer, Instance)) and value.module is not None


def called_modules(owner: Instance) -> list[tuple[str, Unknown]]:
    """The unknown attributes of an object that are called modules, and do not follow others, by their keys."""
    return [
        (f"self.{name}", value)
        for name, value in owner.attributes.items()
        if type(value) is Unknown
        and not (value.hint or value.plain)
        and value.graph is None
        and value.tensor is None
        and BY_NAME["module"].search(name)
        and not is_follower_name(name)
    ]


def text_that_binds(function: Function, name: str) -> ast.AST:
    """The text of a function, or that of the one around it which has bound the name: `net`, in a closure that is given nothing."""
    node: ast.AST = function.node
    if function.scope.outer is None:
        return node
    known: dict[str, ast.AST] = node.__dict__.setdefault("texts that bind", {})
    if name not in known:
        functions = (one for text in function.unit.tree for one in parts_of(text, ast.FunctionDef))
        around = [one for one in functions if one is not node and is_inside(node, one)]
        around.sort(key=lambda one: one.lineno, reverse=True)
        known[name] = next((one for one in (node, *around) if binds_name(one, name)), node)
    return known[name]


def binds_name(function: ast.AST, name: str) -> bool:
    return any(one.arg == name for one in parts_of(function, ast.arg)) or any(
        one.id == name and isinstance(one.ctx, ast.Store) for one in parts_of(function, ast.Name)
    )


def texts_of(cls: ClassValue) -> list[ast.AST]:
    """The definitions of a class and its ancestors."""
    return [one.node for one in cls.lineage() if isinstance(one, ClassValue) and one.node is not None]


def is_applied_by_class(cls: ClassValue, name: str) -> bool:
    """Whether the methods of a class apply an attribute of it: `self.encoder(x)`."""
    return any(f"self.{name}" in deeds_of(one).called for one in texts_of(cls))


def is_applied_by_helper(load: Callable[[ast.Name], Value], key: str, text: ast.AST) -> bool:
    """Whether a class gives an attribute to a function that calls it: `log_prob(self.policy, tokens)`."""
    for target, places in remembered(text, "given to helpers", given_to_helpers).get(key, ()):
        helper = load(target)
        if isinstance(helper, Function):
            defined = helper.defined().node
            names = [one.arg for one in [*defined.args.posonlyargs, *defined.args.args]]
            if any(names[place] in deeds_of(defined).called for place in places if place < len(names)):
                return True
    return False


def given_to_helpers(text: ast.AST) -> dict[str, list[tuple[ast.Name, list[int]]]]:
    """By what a text gives to functions that it calls by a name: these names, and as which arguments each gets it."""
    found: dict[str, list[tuple[ast.Name, list[int]]]] = {}
    for call in parts_of(text, ast.Call):
        if isinstance(call.func, ast.Name):
            keys = [key_of(one) for one in call.args]
            for key in dict.fromkeys(filter(None, keys)):
                found.setdefault(key, []).append(
                    (call.func, [place for place, one in enumerate(keys) if one == key])
                )
    return found
