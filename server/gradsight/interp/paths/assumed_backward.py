"""Backward is assumed to be called on what a forward or a loss returns, also where it was not followed to its end.

*Still read*: a local name that the text behind the place where the work ended reads, in the function that was running and in
each that called it.  The tensors of such names stand for the result, so that what was found on the way is not lost.
"""

from __future__ import annotations

import ast

from gradsight.interp.paths.assembly import Machine
from gradsight.interp.paths.roles import is_tensor_annotation
from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.name_hints import suggests
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import ForwardReturned
from gradsight.model.values import Function, Number, Seq, Value, tensors_in


def differentiate(machine: Machine, result: Value, function: Function, outer: Frame) -> None:
    """Go through the graph of a result, where such an assumption is allowed."""
    if result is None or not machine.assuming:
        return
    losses = machine.entry.graphs_in([result], {})
    machine.frame = outer
    if isinstance(result, Number) and promises_tensor(function):
        # Whoever calls backward on it meets what a tensor without a graph would be.
        plain = Tensor(machine.site(function.node), shape=())
        plain.cuts = result.cuts
        returned = {plain: None}
    else:
        returned = dict.fromkeys([*tensors_in(result), *losses])
    machine.tell(ForwardReturned(result, list(returned), function.name))
    if losses:
        machine.autograd.run_backward(
            losses,
            machine.site(function.node),
            True,
            False,
            True,
            how="assumed",
            assumption="`backward()` is called on the result",
        )


def promises_tensor(function: Function) -> bool:
    """Whether a function is declared to return a tensor, or is the forward of a loss."""
    declared = getattr(function.node, "returns", None)
    if declared is not None:
        return is_tensor_annotation(ast.unparse(declared))
    owner = function.owner
    return function.name == "forward" and owner is not None and suggests("loss", owner.name)


def still_read(ended_at: Site) -> Seq:
    """The values of all names that are still read behind a place, in its frame and in those that called it."""
    values: list[Value] = []
    node: ast.AST = ended_at.node
    frame: Frame | None = ended_at.frame
    while frame is not None and frame.function is not None:
        text = frame.function.node
        line = int(getattr(node, "lineno", 0))
        for name in names_read_behind(text, line):
            if name in frame.namespace:
                values.append(frame.namespace[name])
        if frame.call_site is None:
            break
        node, frame = frame.call_site.node, frame.call_site.frame
    return Seq("tuple", values)


def names_read_behind(function: ast.AST, line: int) -> list[str]:
    """Names that a function reads after a line, or again in a loop around it."""
    reads: list[tuple[str, int]] = remembered(function, "names read", _names_read)
    loops: list[tuple[int, int]] = remembered(function, "loops", _loops)
    start = min([line, *(first for first, last in loops if first <= line <= last)])
    return list(dict.fromkeys(name for name, place in reads if place >= start))


def _names_read(function: ast.AST) -> list[tuple[str, int]]:
    """Names and the lines on which they are read; not those of which only an attribute is asked that every tensor has."""
    asked = {
        id(part.value)
        for part in syntax_parts(function)
        if isinstance(part, ast.Attribute) and part.attr in ("shape", "device", "dtype", "ndim")
    }
    return [
        (part.id, part.lineno)
        for part in syntax_parts(function)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and id(part) not in asked
    ]


def _loops(function: ast.AST) -> list[tuple[int, int]]:
    return [
        (part.lineno, part.end_lineno or part.lineno)
        for part in syntax_parts(function)
        if isinstance(part, (ast.For, ast.AsyncFor, ast.While))
    ]
