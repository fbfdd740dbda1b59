"""Functional transforms (`torch.func.grad`, `jacrev`, `autograd.functional.jacobian`, ...) of functions that ignore their input."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.library import Library
from gradsight.interp.sites import Frame, Site
from gradsight.interp.syntax import names_read
from gradsight.interp.values import Function, Method, Partial, Seq
from gradsight.model.events import Step

BY_POSITION = {"grad", "grad_and_value", "jacrev", "jacfwd"}
"""Transforms that are told by `argnums` what to differentiate."""
BY_INPUT = {"vjp", "jvp", "jacobian", "hvp", "vhp", "linearize"}
"""Transforms that differentiate with respect to every input."""


class Transforms(Library):
    """Derivatives that are zero because the function never looks at what it is differentiated by."""

    def transform(self, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        function = args[0] if args else kwargs.get("func")
        if name in BY_POSITION or name in BY_INPUT or name == "hessian":
            chosen = args[1] if len(args) > 1 and name in BY_POSITION else kwargs.get("argnums", 0)
            self.check_differentiated(function, positions(chosen, name in BY_INPUT), name, node)
        return super().transform(name, args, kwargs, node)

    def check_differentiated(self, function: Any, wanted: list[int] | None, name: str, node: ast.AST) -> None:
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
        place = Site(syntax, Frame(function.name, function.unit, {}, function.scope, 1))
        self.emit("func-ignores-parameters", self.site(node), [Step("made", place, f"{chosen[0]} is never used in this function")],
                  target=chosen[0], function=function.name, transform=name)  # fmt: skip


def positions(chosen: Any, all_inputs: bool) -> list[int] | None:
    """The positions that are differentiated; None for all of them, empty where it cannot be told."""
    if all_inputs:
        return None
    if isinstance(chosen, int):
        return [chosen]
    if isinstance(chosen, Seq) and all(isinstance(item, int) for item in chosen.items):
        return list(chosen.items)
    return []


def works(body: list[Any]) -> bool:
    """Whether a body is more than a placeholder."""
    return not all(
        isinstance(statement, (ast.Pass, ast.Raise))
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in body
    )
