"""Functions that are given a gradient, hooks and custom backwards: what they forget to return, what they edit in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import (
    base_name,
    last_return,
    names_library,
    names_read,
    own_statements,
    returns_value,
)
from gradsight.interp.tensors.shapes import certainly_differ, spelled
from gradsight.interp.tensors.tensor_api import PURE_EXCEPTIONS
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Edge, Node, Tensor
from gradsight.model.trace import CustomApplied, Hooked
from gradsight.model.values import Function, Method, Partial, Scope

SUMS = {"add", "sub", "add_", "sub_", "sum", "expand", "expand_as"}
"""Operators that give an operand the gradient they were given, or a window on it."""
WINDOWS = {
    "view",
    "reshape",
    "flatten",
    "t",
    "T",
    "transpose",
    "permute",
    "squeeze",
    "unsqueeze",
    "view_as",
    "cat",
    "stack",
}
"""Operators whose operand is given a window on the gradient of their result."""


class GradientHooks:
    """`tensor.register_hook(function)` and `backward(ctx, gradient)`, judged by their text."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.tensor_hooks: list[tuple[Tensor, Function, Site, int]] = []
        self.other_shapes: list[tuple[Tensor, Function, Site, Tensor]] = []

    def on_custom_applied(self, fact: CustomApplied) -> None:
        if isinstance(fact.backward, Function) and fact.recorded:
            self.check_function(fact.backward, fact.site, "backward", first=1)

    def on_hooked(self, fact: Hooked) -> None:
        """A tensor hook must return the new gradient; editing the argument in place is not allowed."""
        hook = fact.hook
        skipped = 0
        while isinstance(hook, (Method, Partial)):
            skipped += 1 if isinstance(hook, Method) else len(hook.args)
            hook = hook.function
        if isinstance(hook, Function):
            site = self.path.site(fact.node)
            self.check_function(hook, site, "hook", skipped, edits=False)
            self.tensor_hooks.append((fact.tensor, hook, site, skipped))
            returned = fact.returned
            is_number = isinstance(returned, (int, float))
            if is_number or (
                isinstance(returned, Tensor) and certainly_differ(returned.shape, fact.tensor.shape)
            ):
                self.other_shapes.append((fact.tensor, hook, site, returned))

    def check_shapes(self) -> None:
        """What a hook returns takes the place of the gradient, where a backward comes by."""
        for tensor, hook, site, returned in self.other_shapes:
            place = last_return(hook.node)
            if place is None or not any(
                tensor.edge() in consumers_in(run.loss.node) for run in self.path.backwards
            ):
                continue
            self.claims.add(
                "gradient-refused",
                self.path.place_in(hook, place),
                [Step("call", site, "the hook is registered here")],
                target=tensor.label,
                reason="shape" if isinstance(returned, Tensor) else "number",
                how="hook",
                given=spelled(returned.shape) if isinstance(returned, Tensor) else str(returned),
                wanted=spelled(tensor.shape),
            )

    def finish(self) -> None:
        """A gradient is a tensor's own, unless an operator hands one gradient to several operands.

        Of a tensor that no backward of this code reaches it is not known who else is given its gradient; a leaf's is
        rarely shared.
        """
        self.check_shapes()
        answers: dict[Tensor, set[bool]] = {}
        for run in self.path.backwards if self.tensor_hooks else ():
            consumers = consumers_in(run.loss.node)
            for tensor, *_ in self.tensor_hooks:
                if tensor.edge() in consumers:
                    answers.setdefault(tensor, set()).add(gradient_is_shared(tensor, consumers))
        for tensor, hook, site, skipped in self.tensor_hooks:
            if any(answers.get(tensor, {not tensor.is_leaf})):
                self.check_function(hook, site, "hook", skipped, returns=False)

    def check_function(
        self,
        function: Function,
        site: Site,
        how: str,
        first: int,
        edits: bool = True,
        returns: bool = True,
    ) -> None:
        """`first` is the position of the parameter that receives the gradient; `edits` and `returns`: what to judge."""
        syntax = function.node
        parameters = [argument.arg for argument in [*syntax.args.posonlyargs, *syntax.args.args]][first:]
        if not parameters:
            return
        gradients = set(parameters if how == "backward" else parameters[:1])
        called = Step(
            "call", site, "the hook is registered here" if how == "hook" else "the function is applied here"
        )
        if isinstance(syntax, ast.Lambda):
            if edits and edited_name(syntax.body, gradients):
                self.claims.add(
                    "gradient-edited",
                    self.path.place_in(function, syntax.body),
                    [called],
                    name=parameters[0],
                    how=how,
                )
            return
        for place, name in edits_of(syntax, set(gradients)) if edits else ():
            self.claims.add(
                "gradient-edited", self.path.place_in(function, place), [called], name=name, how=how
            )
        if returns and not returns_value(syntax):
            dropped = (
                self.dropped_gradient(syntax, gradients, function.scope)
                if how == "hook"
                else last_computation(syntax.body)
            )
            if dropped is not None:
                self.claims.add(
                    "gradient-edited",
                    self.path.place_in(function, dropped),
                    [called],
                    name=parameters[0],
                    how=how,
                    returns="nothing",
                )

    def dropped_gradient(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, gradients: set[str], scope: Scope | None
    ) -> Any:
        """The statement that computes a new gradient which nothing uses."""
        statements = list(own_statements(function.body))
        for index, statement in enumerate(statements):
            if isinstance(statement, ast.Expr):
                if self.computes_from(statement.value, gradients, scope):
                    return statement
            elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target = statement.targets[0]
                if not isinstance(target, ast.Name) or not names_read(statement.value) & gradients:
                    continue
                outside = any(
                    isinstance(other, (ast.Global, ast.Nonlocal)) and target.id in other.names
                    for other in statements
                )
                later = statements[index + 1 :]
                if not outside and not any(target.id in names_read(other) for other in later):
                    return statement
        return None

    def computes_from(self, value: ast.AST, gradients: set[str], scope: Scope | None) -> bool:
        """Whether an expression is a pure torch operation on the gradient: `grad.clamp(...)`, `torch.clamp(grad, ...)`."""
        if isinstance(value, ast.BinOp):
            return bool(names_read(value) & gradients)
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
            return False
        name = value.func.attr
        receiver = base_name(value.func.value)
        if receiver in gradients:
            fact = self.path.table.find(f"Tensor.{name}")
        elif value.args and base_name(value.args[0]) in gradients and names_library(value.func.value, scope):
            fact = self.path.table.find(f"torch.{name}")
        else:
            return False
        return fact is not None and not any(case.writes for case in fact.cases) and not name.endswith("_")


def consumers_in(start: Node | None) -> dict[Edge | None, list[Node]]:
    """Everything that a backward from here visits, each with the nodes that hand it a gradient."""
    consumers: dict[Edge | None, list[Node]] = {start: []} if start is not None else {}
    todo: list[Edge] = [start] if start is not None else []
    while todo:
        node = todo.pop()
        if not isinstance(node, Node):
            continue
        for edge in node.inputs:
            if edge not in consumers:
                consumers[edge] = []
                todo.append(edge)
            consumers[edge].append(node)
    return consumers


def gradient_is_shared(tensor: Tensor, consumers: dict[Edge | None, list[Node]]) -> bool:
    """Whether a sum hands its own gradient on to this tensor."""
    todo, looked = [tensor.edge()], set[Node]()
    while todo:
        for node in consumers.get(todo.pop(), ()):
            if node.op in SUMS:
                return True
            if node.op in WINDOWS and node not in looked:
                looked.add(node)
                todo.append(node)
    return False


def edits_of(
    function: ast.FunctionDef | ast.AsyncFunctionDef, names: set[str]
) -> Iterator[tuple[ast.AST, str]]:
    """In-place changes of what these parameters hold, in reading order; a name that is bound anew holds something else."""
    for statement in own_statements(function.body):
        if isinstance(statement, ast.AugAssign):
            name = base_name(statement.target)
            if name in names:
                yield statement, name
        elif isinstance(statement, (ast.Expr, ast.Return, ast.Assign)) and statement.value is not None:
            value = statement.value
            for part in value.elts if isinstance(value, ast.Tuple) else (value,):
                name = edited_name(part, names)
                if name:
                    yield part, name
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Subscript) and base_name(target) in names:
                    yield statement, base_name(target)
                elif isinstance(target, ast.Name):
                    if base_name(statement.value) in names or edited_name(statement.value, names):
                        names.add(target.id)
                    else:
                        names.discard(target.id)


def edited_name(node: ast.AST, names: set[str]) -> str:
    """The name in `name.something_(...)`, also at the beginning of a chain of such calls, if it is one of these."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method, owner = node.func.attr, node.func.value
        if method in PURE_EXCEPTIONS:
            # `saved.detach().requires_grad_()` sets a flag and changes no value.
            node = same_memory(owner)
            continue
        if not method.endswith("_") or method.endswith("__"):
            return ""
        node = same_memory(owner)
        name = base_name(node)
        if name:
            return name if name in names else ""
    return ""


def same_memory(node: ast.AST) -> ast.AST:
    """What `.data` and `.detach()` show the memory of."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
        return node.func.value
    return node


def last_computation(body: list[ast.stmt]) -> ast.stmt | None:
    """The last statement of a body that does something; None for a body that is empty or only raises."""
    working = [
        statement
        for statement in body
        if not isinstance(statement, (ast.Pass, ast.Raise, ast.Return))
        and not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    ]
    if not working or isinstance(body[-1], (ast.Raise, ast.Return)):
        return None
    return working[-1]
