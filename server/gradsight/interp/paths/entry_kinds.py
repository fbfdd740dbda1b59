"""Which functions can be entries, and of what kind: parts of a forward, losses, methods of modules."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.paths.call_graph import CallGraph, applies_a_module, members_of, summary_of, with_blocks
from gradsight.interp.paths.roles import annotation_text, is_tensor_annotation
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.name_hints import suggests
from gradsight.model.sites import Unit
from gradsight.model.values import ClassValue, Function


def is_loss_name(name: str) -> bool:
    return suggests("loss", name)


def answers_without_grad(method: str) -> bool:
    """Names of methods by which an unknown module gives its answer rather than something to learn from: `model.generate(...)`."""
    return suggests("answer of a model", method)


def is_inference_name(name: str) -> bool:
    """Names of functions that lead out of training; they are part of it if a forward or a loss calls them."""
    return suggests("inference", name)


def takes_tensors(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """Whether a function declares that it works on tensors."""
    return any(
        is_tensor_annotation(annotation_text(parameter))
        for parameter in [*function.args.posonlyargs, *function.args.args]
    )


def is_module_class(cls: ClassValue) -> bool:
    """A class that derives from nn.Module, or, with a base that is not known, one that has a forward."""
    if cls.kind == "module":
        return True
    return cls.kind == "plain" and cls.has_unknown_base() and "forward" in cls.namespace


def is_differentiable(method: Function, cls: ClassValue) -> bool:
    """Whether what a method returns is part of what is differentiated."""
    if isinstance(method.node, ast.Lambda):
        return False
    if is_inference_name(method.name):
        return False
    if is_module_class(cls):
        return not method.name.startswith("__") or method.name == "__call__"
    return is_loss_name(method.name) or applies_a_module(method.node)


def functions_in(unit: Unit) -> list[ast.AST]:
    """The functions and methods of a top-level statement, without those nested in functions."""
    found: list[ast.AST] = []
    todo: list[Any] = list(unit.tree)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append(node)
        elif isinstance(node, (ast.ClassDef, ast.If, ast.Try, ast.With)):
            todo.extend(node.body)
            todo.extend(getattr(node, "orelse", ()))
    return found[::-1]


def call_graph_of(units: list[Unit]) -> CallGraph:
    """The functions of a file, with its classes and the names that it imports."""
    classes: list[ast.ClassDef] = []
    imported: set[str] = set()
    for unit in units:
        statements = with_blocks(unit.tree)
        for one in statements:
            if isinstance(one, ast.ClassDef):
                classes.append(one)
                statements += members_of(one)
            elif isinstance(one, (ast.Import, ast.ImportFrom)):
                imported.update(alias.asname or alias.name.partition(".")[0] for alias in one.names)
    return CallGraph((function for unit in units for function in functions_in(unit)), classes, imported)


def with_inner_classes(classes: list[ClassValue]) -> dict[ClassValue, str]:
    """Classes and those that stand in their bodies, with their names: `Outer.Inner`."""
    names = {cls: cls.name for cls in classes}
    todo = list(classes)
    for cls in todo:
        for inner in cls.namespace.values() if type(cls.namespace) is dict else ():
            if isinstance(inner, ClassValue) and inner.node in getattr(cls.node, "body", ()):
                names.setdefault(inner, f"{names[cls]}.{inner.name}")
                todo.append(inner)
    return names


def training_around(places: list[tuple[Unit, ast.AST]]) -> set[ast.AST]:
    """The functions that differentiate or step, and in which one of these places is."""
    return {
        function
        for unit in {unit for unit, _ in places}
        for function in functions_in(unit)
        if summary_of(function).steps
        and any(at is unit and place in syntax_parts(function) for at, place in places)
    }


def trains_itself(function: ast.AST) -> bool:
    """Whether a function differentiates, and steps or clears: `forward` of a trainer that is a module."""
    calls = summary_of(function).calls
    return "backward" in calls and not calls.isdisjoint({"step", "zero_grad"})
