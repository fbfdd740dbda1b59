"""Which functions of a file are part of a forward or of a loss, themselves or by who calls them."""

from __future__ import annotations

import ast

from gradsight.interp.paths.call_graph import CallGraph, applies_a_module, summary_of
from gradsight.interp.paths.entry_kinds import (
    is_differentiable,
    is_inference_name,
    is_loss_name,
    is_module_class,
    takes_tensors,
)
from gradsight.interp.paths.grad_guards import called_without_grad
from gradsight.model.values import ClassValue, Function


def differentiated_in(classes: list[ClassValue], functions: list[Function], calls: CallGraph) -> set[ast.AST]:
    """Functions whose results modules, losses or other such functions use."""
    defined = [one.defined() for one in functions if not is_inference_name(one.defined().name)]
    start: list[ast.AST] = [one.node for one in defined if is_loss_name(one.name)]
    in_model_file = any(is_module_class(cls) for cls in classes)
    start += [
        one.node
        for one in defined
        if applies_a_module(one.node) or (in_model_file and takes_tensors(one.node))
    ]
    for cls in classes:
        for member in cls.namespace.values():
            if isinstance(member, Function) and is_differentiable(member.defined(), cls):
                start.append(member.defined().node)
    quiet = called_without_grad(calls.by_name)
    reached = calls.reached_from(node for node in start if getattr(node, "name", "") not in quiet)
    return {node for node in reached if not summary_of(node).steps and getattr(node, "name", "") not in quiet}
