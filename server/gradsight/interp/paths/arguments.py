"""The arguments that a function is executed with by itself: what its defaults and declarations tell, else unknown."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeGuard

from gradsight.interp.paths.assembly import Machine
from gradsight.interp.paths.class_evidence import class_asked_for, class_kept, is_whole_model
from gradsight.interp.paths.receivers import forget_state, make_receiver
from gradsight.interp.paths.roles import (
    MODULE,
    PLAIN_KINDS,
    annotated_role,
    annotation_text,
    is_constant_if_left_out,
    is_constant_name,
    is_fed_to_model,
    is_number_name,
    is_source_name,
    is_tensor_annotation,
    key_of,
    works_on_arrays,
)
from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.sites import Frame
from gradsight.model.values import ClassValue, External, Function, Instance, Layer, Unknown, Value

LOADER = "torch.utils.data.DataLoader"
MOST_FURTHER = 12
NOT_MADE = {"Protocol", "ABC", "Enum", "IntEnum", "StrEnum", "TypedDict", "NamedTuple"}


def unknown_argument(
    machine: Machine, outer: Frame, function: Function, parameter: ast.arg, default: Value, context: str
) -> Value:
    """An argument that nobody passed; `outer` is the frame in which declarations are read."""
    name = parameter.arg
    if isinstance(default, (bool, str, int, float)):
        return Unknown(f"argument {name}", {bool: "bool", str: "text"}.get(type(default), "number"))
    if isinstance(default, (Function, ClassValue)):
        return default
    if isinstance(default, (Instance, Layer)):
        copied: Value = machine.libraries.deep_copy(default, parameter, {})
        return copied
    annotation = annotation_text(parameter)
    role = annotated_role(annotation)
    declared = declared_class(machine, outer, parameter.annotation) if not role else None
    if is_module_of_file(declared, outer):
        return given_module(machine, declared)
    if isinstance(declared, ClassValue) and declared.kind == "module":
        role = MODULE
    elif declared is not None and (made := declared_object(machine, declared, parameter)) is not None:
        return made
    elif not annotation and not role and (fitting := fitting_object(machine, outer, function, parameter)):
        return fitting
    value = Unknown(f"argument {name}")
    value.is_outside = True
    if role:
        machine.entry.make_stand_in(value, role, name, parameter)
    elif annotation in PLAIN_KINDS:
        value.hint = PLAIN_KINDS[annotation]
    elif is_number_name(name) and not annotation:
        value.hint = "number"
    elif is_constant_name(name) or is_source_name(name):
        value.plain = is_constant_name(name) if context != "function" else is_source_name(name)
    elif (default is None and is_constant_if_left_out(name, function.node)) or (
        function.owner is None and is_fed_to_model(name, function.node)
    ):
        value.plain = True
    elif is_tensor_annotation(annotation) or not (annotation or works_on_arrays(function.node)):
        value.plain = is_whole_model(machine, outer, function.owner)
        value.argument = "" if value.plain else name
    return value


def arguments_for(
    machine: Machine, outer: Callable[[], Frame], function: Function, given: list[Value], context: str
) -> tuple[list[Value], dict[str, Value]]:
    """What a function is called with as an entry, after what it is given: by position, and by name."""
    signature = function.node.args
    parameters = [*signature.posonlyargs, *signature.args]
    args = list(given)
    first_default = len(parameters) - len(function.defaults)
    for index, parameter in enumerate(parameters[len(given) :], start=len(given)):
        default = function.defaults[index - first_default] if index >= first_default else None
        if index >= first_default and default is None:
            machine.has_optional_arguments = True
            if machine.leaves_out_optional:
                args.append(None)
                continue
        args.append(unknown_argument(machine, outer(), function, parameter, default, context))
    rest, named = rest_of_arguments(machine, outer(), function, context)
    return args + rest, named


def rest_of_arguments(
    machine: Machine, outer: Frame, function: Function, context: str
) -> tuple[list[Value], dict[str, Value]]:
    """What goes into `*args`, and what may be passed by name alone."""
    return further_arguments(function.node), optional_by_name(machine, outer, function, context)


def optional_by_name(machine: Machine, outer: Frame, function: Function, context: str) -> dict[str, Value]:
    """What may be passed by name alone and is None otherwise: given on one path, left out on another."""
    defaults = function.keyword_defaults
    names = [one for one in function.node.args.kwonlyargs if defaults.get(one.arg, 0) is None]
    machine.has_optional_arguments = machine.has_optional_arguments or bool(names)
    return {
        one.arg: unknown_argument(machine, outer, function, one, None, context)
        for one in names
        if not machine.leaves_out_optional
    }


def fitting_object(machine: Machine, outer: Frame, function: Function, parameter: ast.arg) -> Value:
    """An object of the one class that has what the function asks of an argument; None where there is no such class."""
    cls = class_asked_for(machine, outer, function, parameter.arg)
    if cls is None or not (cls.kind == "module" or can_be_made(cls)):
        return None
    machine.premises.setdefault(f"`{parameter.arg}` is an object of class `{cls.name}`")
    return given_module(machine, cls)


def given_to_constructor(machine: Machine, outer: Frame, cls: ClassValue) -> dict[str, Value]:
    """Objects for arguments of `__init__`: of the module class that is declared, or that alone has what the methods ask of them."""
    init, _ = cls.find("__init__")
    if not isinstance(init, Function) or init.unit is not cls.unit or init.wrappers:
        return {}
    signature = init.node.args
    positional = [*signature.posonlyargs, *signature.args][1:]
    needed = [
        *positional[: len(positional) - len(signature.defaults)],
        *(one for one, default in zip(signature.kwonlyargs, signature.kw_defaults) if default is None),
    ]
    found: dict[str, Value] = {}
    for parameter in needed:
        if parameter.annotation is not None:
            declared = declared_class(machine, outer, parameter.annotation)
            if is_module_of_file(declared, outer) and declared is not cls:
                found[parameter.arg] = given_module(machine, declared)
        elif cls.kind == "plain" and parameter not in signature.posonlyargs:
            kept = class_kept(machine, outer, cls, init, parameter.arg)
            if kept is not None and kept.kind == "module":
                machine.premises.setdefault(f"`{parameter.arg}` is an object of class `{kept.name}`")
                found[parameter.arg] = given_module(machine, kept)
    return found


def is_module_of_file(declared: Value, outer: Frame) -> TypeGuard[ClassValue]:
    """Whether a declaration names a module class of the file in which it stands."""
    return (
        isinstance(declared, ClassValue)
        and declared.kind == "module"
        and declared.unit is not None
        and declared.unit.path == outer.unit.path
    )


def given_module(machine: Machine, cls: ClassValue) -> Instance:
    """An object of a class of the file itself, as its `__init__` makes it."""
    instance = make_receiver(machine, cls)
    forget_state(instance)
    return instance


def declared_object(machine: Machine, declared: Value, parameter: ast.arg) -> Value:
    """An object of a class of the workspace, or of a library that is known; None where it would tell nothing."""
    if isinstance(declared, External) and declared.path == LOADER:
        loader: Value = machine.libraries.call_external(declared.path, [Unknown("dataset")], {}, parameter)
        return loader
    if not isinstance(declared, ClassValue):
        return None
    if declared.kind == "data":
        return with_unknown_fields(declared)
    if not can_be_made(declared):
        return None
    made = make_receiver(machine, declared)
    forget_state(made)
    return made


def declared_class(machine: Machine, outer: Frame, annotation: ast.expr | None) -> Value:
    """What a plain name or attribute in a declaration stands for; `X | None` and `Optional[X]` are X."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return None
    if isinstance(annotation, ast.BinOp) and getattr(annotation.right, "value", 0) is None:
        annotation = annotation.left
    if isinstance(annotation, ast.Subscript) and getattr(annotation.value, "id", "") == "Optional":
        annotation = annotation.slice
    if annotation is None or not key_of(annotation):
        return None
    before = machine.enter(outer)
    found: Value = machine.language.evaluate(annotation)
    machine.enter(before)
    return found


def can_be_made(cls: ClassValue) -> bool:
    """Whether an object of a declared class tells more than its name: not where others fill in what it does."""
    if cls.kind != "plain" or cls.has_unknown_base() or cls.name in NOT_MADE:
        return False
    init, _ = cls.find("__init__")
    return isinstance(init, Function) and not any(
        is_abstract(method.node)
        for one in cls.lineage()
        if isinstance(one, ClassValue)
        for method in one.namespace.values()
        if isinstance(method, Function) and not isinstance(method.node, ast.Lambda)
    )


def with_unknown_fields(cls: ClassValue) -> Instance:
    """An object of a data class of which no field is known; declarations tell numbers, flags and texts."""
    instance = Instance(cls, None)
    for one in cls.lineage():
        body = one.node.body if isinstance(one, ClassValue) and isinstance(one.node, ast.ClassDef) else []
        for statement in body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                name, declared = statement.target.id, ast.unparse(statement.annotation)
                kind = PLAIN_KINDS.get(
                    declared.removesuffix(" | None").removeprefix("Optional[").rstrip("]"), ""
                )
                instance.attributes.setdefault(name, Unknown(f"field {name}", kind))
    return instance


def is_abstract(function: ast.AST) -> bool:
    """Whether a method does nothing but raise."""
    body = [
        statement
        for statement in getattr(function, "body", ())
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    ]
    return len(body) == 1 and isinstance(body[0], ast.Raise)


def further_arguments(function: ast.AST) -> list[Value]:
    """The items of `*args` that a function reads by their number; two if it reads them all."""
    signature = getattr(function, "args", None)
    if signature is None or signature.vararg is None:
        return []
    name = signature.vararg.arg
    count = remembered(function, "further arguments", lambda node: _items_read(node, name))
    found: list[Value] = []
    for index in range(count):
        item = Unknown(f"argument {name}[{index}]")
        item.argument = f"{name}[{index}]"
        found.append(item)
    return found


def _items_read(function: ast.AST, name: str) -> int:
    read = 0
    for node in syntax_parts(function):
        if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == name:
            index = node.slice.value if isinstance(node.slice, ast.Constant) else 1
            read = max(read, index + 1 if isinstance(index, int) and index >= 0 else 2)
        elif isinstance(node, ast.Assign) and getattr(node.value, "id", "") == name:
            target = node.targets[0]
            read = max(read, len(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else 2)
        elif isinstance(node, ast.Name) and node.id == name and not read:
            read = 2
    return min(read, MOST_FURTHER)
