"""Grad mode that a call of `set_grad_enabled` switched off and that stays off after the function that did it."""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import own_statements
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.name_hints import suggests
from gradsight.model.sites import Site
from gradsight.model.trace import CallReturned, CutByMode
from gradsight.model.values import Function


class GradModeLeaks:
    """Modes that outlive the function that set them."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.left_off: Site | None = None
        """The call that switched grad mode off, in a function that has returned since."""

    def on_call_returned(self, fact: CallReturned) -> None:
        if fact.recorded and not self.path.grad_mode and self.path.mode_site is not None:
            self.returned_with_mode_off(fact.function, self.path.mode_site, fact.node)

    def returned_with_mode_off(self, function: Function, place: Site, node: ast.AST) -> None:
        if not is_switch(place.node) or "enter" in function.name or isinstance(function.node, ast.Lambda):
            return
        calls = [
            call for statement in function.node.body for call in syntax_parts(statement) if is_switch(call)
        ]
        inner = [
            part
            for part in syntax_parts(function.node)
            if isinstance(part, FUNCTIONS) and part is not function.node
        ]
        if place.node not in calls or any(is_switch(call) for part in inner for call in syntax_parts(part)):
            return
        if any(call is not place.node and not switches_off(call) for call in calls):
            self.mode_stays_off(
                place,
                Step(
                    "call", self.path.site(node), "this call can leave before grad mode is switched on again"
                ),
            )
        elif (
            suggests("run without gradients", function.name)
            and len(list(own_statements(function.node.body))) > 1
        ):
            self.left_off = place

    def on_cut_by_mode(self, fact: CutByMode) -> None:
        if self.left_off is not None and self.left_off is self.path.mode_site:
            switches = [action for action in self.path.log if action.verb in ("eval", "train")]
            if not switches or switches[-1].verb == "train":
                self.mode_stays_off(self.left_off, Step("needed", fact.site, "computed here without a graph"))

    def mode_stays_off(self, place: Site, step: Step) -> None:
        self.claims.add("grad-mode-left-off", place, [step, *self.path.call_steps(place)])


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def is_switch(node: ast.AST) -> bool:
    """A call of `set_grad_enabled`."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("set_grad_enabled")


def switches_off(node: ast.AST) -> bool:
    given = node.args[0] if isinstance(node, ast.Call) and node.args else None
    return isinstance(given, ast.Constant) and given.value is False
