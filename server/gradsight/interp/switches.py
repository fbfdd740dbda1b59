"""Grad mode that a call of `set_grad_enabled` switched off and that stays off after the function that did it."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.backward_faults import INFERENCE_NAMES
from gradsight.interp.syntax import own_statements
from gradsight.interp.transforms import Transforms
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Cut, Tensor
from gradsight.model.values import Function


class Switches(Transforms):
    """Modes that outlive the function that set them."""

    left_off: Site | None = None
    """The call that switched grad mode off, in a function that has returned since."""

    def call_function(self, function: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        before = self.grad_mode
        result = super().call_function(function, args, kwargs, node)
        if before and not self.grad_mode and self.mode_site is not None:
            self.returned_with_mode_off(function, self.mode_site, node)
        return result

    def returned_with_mode_off(self, function: Function, place: Site, node: ast.AST) -> None:
        if not is_switch(place.node) or "enter" in function.name or isinstance(function.node, ast.Lambda):
            return
        calls = [call for statement in function.node.body for call in ast.walk(statement) if is_switch(call)]
        inner = [
            part
            for part in ast.walk(function.node)
            if isinstance(part, FUNCTIONS) and part is not function.node
        ]
        if place.node not in calls or any(is_switch(call) for part in inner for call in ast.walk(part)):
            return
        if any(call is not place.node and not switches_off(call) for call in calls):
            self.mode_stays_off(
                place, Step("call", self.site(node), "this call leaves before it is switched on again")
            )
        elif INFERENCE_NAMES.search(function.name) and len(list(own_statements(function.node.body))) > 1:
            self.left_off = place

    def mode_cut(self, op: str, operands: list[tuple[str, Tensor]], site: Site) -> frozenset[Cut]:
        if self.left_off is not None and self.left_off is self.mode_site:
            switches = [action for action in self.log if action.verb in ("eval", "train")]
            if not switches or switches[-1].verb == "train":
                self.mode_stays_off(self.left_off, Step("needed", site, "computed without a graph here"))
        return super().mode_cut(op, operands, site)

    def mode_stays_off(self, place: Site, step: Step) -> None:
        self.emit("grad-mode-left-off", place, [step, *self.call_steps(place)])


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def is_switch(node: ast.AST) -> bool:
    """A call of `set_grad_enabled`."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("set_grad_enabled")


def switches_off(node: ast.AST) -> bool:
    given = node.args[0] if isinstance(node, ast.Call) and node.args else None
    return isinstance(given, ast.Constant) and given.value is False
