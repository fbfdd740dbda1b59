"""Backwards that nobody hears: of a custom Function that ignores the gradient it is given, and of a module, which nobody calls.

*Ignoring*: no gradient that a custom `backward` returns depends on the one that it gets.  That is right only where it gets
ones: where its output is the loss, or is only summed on the way there.

*Uncalled*: a module with a method `backward` that computes with its argument and returns something, as that of a Function does.
Autograd calls none of a module.  One that calls `backward` or steps itself is a part of a training loop.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import names_read, own_statements
from gradsight.interp.syntax_parts import parts_of, syntax_parts
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Node
from gradsight.model.trace import CustomApplied, Walked
from gradsight.model.values import MISSING, ClassValue, Function, Instance, Unknown

FunctionSyntax = ast.FunctionDef | ast.AsyncFunctionDef
SUMMING = frozenset({"add", "add_", "sum", "view", "reshape", "squeeze", "unsqueeze", "clone"})
"""Operators that pass a gradient of ones on as ones."""
TRAINING = frozenset({"backward", "step", "zero_grad", "manual_backward"})


class IgnoredGradients:
    """Looks at each backward that runs, and at the modules when the path is over."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_walked(self, fact: Walked) -> None:
        customs = [node for node in fact.nodes if node.customs and node.op != "autograd.grad"]
        if not customs:
            return
        users: dict[Node, list[Node]] = {}
        for node in fact.nodes:
            for edge in node.inputs:
                if isinstance(edge, Node):
                    users.setdefault(edge, []).append(node)
        for node in customs:
            if gets_a_factor(node, users):
                self.check_ignored(node.customs[0], fact.site)

    def check_ignored(self, applied: CustomApplied, site: Site) -> None:
        backward = applied.backward
        if not isinstance(backward, Function) or not isinstance(backward.node, FunctionSyntax):
            return
        place = ignoring_return(backward.node)
        if place is None or not any(tensor.needs_grad() is True for tensor in applied.inputs):
            return
        self.claims.add(
            "gradient-ignored",
            self.path.place_in(backward, place),
            [
                Step("call", applied.site, "the function is applied here"),
                Step("needed", site, "this backward hands it a gradient that is not one"),
            ],
            cls=applied.cls.name,
            given=", ".join(gradient_names(backward.node)),
        )

    def finish(self) -> None:
        if not self.path.backwards:
            return
        texts = {
            id(one.cls.node): one.cls.node
            for one in self.path.modules_made
            if isinstance(one, Instance) and one.cls.node is not None
        }
        is_by_hand = any(is_called_by_hand(text) for text in texts.values())
        for module in self.path.modules_made:
            method = own_backward(module)
            if method is None or not is_gradient_function(method.node) or method.node in self.path.executed:
                continue
            forward, _ = module.cls.find("forward")
            if not isinstance(forward, Function) or forward.node not in self.path.executed:
                continue
            if is_by_hand or any(is_called_by_hand(statement) for statement in method.unit.tree):
                # The inverse of a flow, or layers that are differentiated by hand: a module around it calls it.
                continue
            self.claims.add(
                "backward-of-module",
                self.path.place_in(method, method.node),
                [Step("call", self.path.backwards[-1].site, "this backward does not come here")],
                cls=module.cls.name,
            )


def gets_a_factor(node: Node, users: dict[Node, list[Node]]) -> bool:
    """Whether something on the way from the loss scales, averages or transforms the gradient."""
    todo, seen = list(users.get(node, ())), {node}
    while todo:
        user = todo.pop()
        if user.op not in SUMMING:
            return True
        if user not in seen:
            seen.add(user)
            todo.extend(users.get(user, ()))
    return False


def gradient_names(backward: FunctionSyntax) -> list[str]:
    """The parameters of a custom backward but for `ctx`."""
    given = [*backward.args.posonlyargs, *backward.args.args][1:]
    names = [one.arg for one in given]
    return names + ([backward.args.vararg.arg] if backward.args.vararg is not None else [])


def ignoring_return(backward: FunctionSyntax) -> ast.Return | None:
    """The return of a backward in whose text nothing that depends on the given gradients is ever returned."""
    returns = [inner for inner in own_statements(backward.body) if isinstance(inner, ast.Return)]
    names = set(gradient_names(backward))
    if len(returns) != 1 or not names or returns[0].value is None or is_none(returns[0].value):
        return None
    if any(isinstance(part, (ast.Raise, ast.Yield)) for part in syntax_parts(backward)):
        return None
    return None if names_read(returns[0]) & depending_on(names, backward) else returns[0]


def depending_on(names: set[str], function: FunctionSyntax) -> set[str]:
    """Names of a function that may depend on others: what is bound, written or handed on in one statement with them."""
    found, known = set(names), -1
    while known != len(found):
        known = len(found)
        for statement in own_statements(function.body):
            if not isinstance(statement, ast.Return) and names_read(statement) & found:
                found |= {part.id for part in parts_of(statement, ast.Name)}
    return found


def is_none(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple):
        return all(is_none(element) for element in value.elts)
    return isinstance(value, ast.Constant) and value.value is None


def own_backward(module: Any) -> Function | None:
    """The method `backward` of a module's class, or of one that it derives from, if all of these are the program's or torch's."""
    if not isinstance(module, Instance) or module.cls.kind != "module" or module.cls.unit is None:
        return None
    for one in module.cls.lineage():
        if isinstance(one, Unknown) or (isinstance(one, ClassValue) and one.unit and one.unit.library):
            return None
    method, _ = module.cls.find("backward")
    if method is MISSING or not isinstance(method, Function) or not isinstance(method.node, FunctionSyntax):
        return None
    return method


def is_gradient_function(method: Any) -> bool:
    """Whether a method takes one value or more, computes with them, and returns the result."""
    names = {one.arg for one in method.args.args[1:]}
    returns = [inner for inner in own_statements(method.body) if isinstance(inner, ast.Return)]
    if not names or not returns or method.decorator_list:
        return False
    derived = depending_on(names, method)
    if not any(names_read(one) & derived and getattr(one.value, "id", None) not in names for one in returns):
        return False
    attributes = parts_of(method, ast.Attribute)
    return not any(isinstance(part, ast.Attribute) and part.attr in TRAINING for part in attributes)


def is_called_by_hand(statement: ast.AST) -> bool:
    """Whether something calls a `backward` with what may be a gradient: a chain of layers that is differentiated by hand."""
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr == "backward"
        and bool(part.args)
        for part in parts_of(statement, ast.Call)
    )
