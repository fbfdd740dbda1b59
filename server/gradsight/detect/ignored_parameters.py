"""Functions given to a transform of torch.func that do not use what they are differentiated by."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import names_read
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.tensors import Edge, Node, Tensor, nodes_and_leaves
from gradsight.model.trace import TransformApplied, Transformed
from gradsight.model.values import Function, Layer, Method, Partial


class IgnoredParameters:
    """By the text of the function, else by the graph of its value."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.told: set[Any] = set()

    def on_transformed(self, fact: Transformed) -> None:
        """A function whose text never names what it is differentiated by."""
        function, wanted, name, node = fact.function, fact.wanted, fact.name, fact.node
        skipped = 0
        while isinstance(function, (Method, Partial)):
            skipped += 1 if isinstance(function, Method) else len(function.args)
            function = function.function
        if not isinstance(function, Function):
            return
        syntax = function.node
        parameters = [argument.arg for argument in [*syntax.args.posonlyargs, *syntax.args.args]][skipped:]
        chosen = (
            parameters
            if wanted is None
            else [parameters[i] for i in wanted if -len(parameters) <= i < len(parameters)]
        )
        if not chosen:
            return
        body = syntax.body if isinstance(syntax.body, list) else [syntax.body]
        read: set[str] = set()
        for statement in body:
            read |= names_read(statement)
        if read & {*chosen, "locals", "vars"} or not works(body):
            return
        instead = used_instead(body, function.scope)
        place, other = (
            (
                self.path.site(node),
                Step(
                    "made",
                    self.path.place_in(function, syntax),
                    f"`{chosen[0]}` is never used in this function",
                ),
            )
            if instead is None
            else (
                self.path.place_in(function, instead),
                Step("call", self.path.site(node), f"`{name}` differentiates by `{chosen[0]}` here"),
            )
        )
        self.claims.add(
            "func-ignores-parameters",
            place,
            [other],
            target=chosen[0],
            function=function.name,
            transform=name,
        )
        self.told.add(self.path.site(node).key)

    def on_transform_applied(self, fact: TransformApplied) -> None:
        """The function was executed on what it is differentiated by: the value must depend on it."""
        value, inputs, made, place, target = fact.value, fact.inputs, fact.made, fact.node, fact.target
        if made.key in self.told:
            return
        start = value.edge()
        if start is not None and may_lead_to(inputs, start):
            return
        steps = [Step("call", self.path.site(place), "the function is applied here")]
        if value.requires_grad is False and value.cuts:
            ends = [one for one in value.cuts if any(leads_to(inputs, edge) for edge in one.edges)]
            if ends:
                last = max(ends, key=lambda cut: (cut.tick, cut.serial))
                self.claims.add("func-ignores-parameters", last.site, steps, target=target, cut=last.op)
            return
        if start is None and value.dtype == "?":
            return
        self.claims.add("func-ignores-parameters", made, steps, target=target, function="", transform="grad")


def may_lead_to(inputs: list[Tensor], start: Edge) -> bool:
    """Whether a graph reaches one of the inputs, or an operator of which not all is known."""
    return any(
        edge.open or edge.requires is not True
        if isinstance(edge, Node)
        else any(edge is one for one in inputs)
        for edge in nodes_and_leaves((start,))
    )


def leads_to(inputs: list[Tensor], start: Edge) -> bool:
    return any(edge is one for edge in nodes_and_leaves((start,)) for one in inputs)


def used_instead(body: list[Any], scope: Any) -> ast.expr | None:
    """What a function computes with in place of its argument: the call of a module from outside, or a tensor."""
    outside: ast.expr | None = None
    for part in (inner for statement in body for inner in syntax_parts(statement)):
        read = part.func if isinstance(part, ast.Call) else part
        if not isinstance(read, ast.Name) or not isinstance(read.ctx, ast.Load):
            continue
        around = scope
        while around is not None and read.id not in around.names:
            around = around.outer
        value = around.names[read.id] if around is not None else None
        if isinstance(part, ast.Call) and (
            isinstance(value, Layer) or getattr(value, "module", None) is not None
        ):
            return part
        if outside is None and isinstance(value, Tensor) and value.requires_grad is not False:
            outside = read
    return outside


def works(body: list[Any]) -> bool:
    """Whether a body is more than a placeholder."""
    return not all(
        isinstance(statement, (ast.Pass, ast.Raise))
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in body
    )
