"""Methods that are one step of a training whose loop is elsewhere: what they leave in `.grad`, the next call adds to.

*Step method*: it differentiates and steps an optimizer that outlives the call, outside of any loop.  Nothing in its
file calls it in a loop that was seen; a method that steps once for a batch is called for every batch.
"""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_ledger import GradientLedger
from gradsight.detect.partly_cleared import is_cleared
from gradsight.detect.path import Path
from gradsight.interp.paths.roles import OPTIMIZER, key_of, role_of
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.trace import CallReturned, MethodReturned
from gradsight.model.values import ClassValue, Function, Instance, Layer


class RepeatedSteps:
    """Looks back at one call of a step method as one of many."""

    def __init__(self, path: Path, claims: Claims, ledger: GradientLedger) -> None:
        self.path = path
        self.claims = claims
        self.ledger = ledger
        self.executed: set[ast.AST] = set()

    def on_call_returned(self, fact: CallReturned) -> None:
        self.executed.add(fact.function.node)

    def on_method_returned(self, fact: MethodReturned) -> None:
        if self.path.gradients_unknown or fact.may_be_cleared_outside:
            return
        for optimizer in fact.optimizers:
            if not self.may_be_cleared(optimizer, fact):
                self.look_back(optimizer, fact)

    def look_back(self, optimizer: Optimizer, fact: MethodReturned) -> None:
        if optimizer.escaped or optimizer.is_guessed():
            return
        log = [action for action in self.path.log if action.tick >= fact.started]
        steps = [
            action
            for action in log
            if action.verb == "step" and action.subject is optimizer and not action.loops
        ]
        parameters = self.path.ever_held_by(optimizer)
        runs = [
            action
            for action in log
            if action.verb == "backward" and steps and action.tick < steps[-1].tick
            if parameters & set(action.leaves)
        ]
        if not runs or self.path.escaped_between(parameters, fact.started, self.path.tick):
            return
        place = runs[-1].site
        # One that was not seen being made learns what it holds after it was told to clear it.
        clears_itself = any(action.verb == "zero" and action.subject is optimizer for action in log)
        if clears_itself or is_cleared(
            self.path, self.ledger, optimizer, parameters, fact.started, self.path.tick
        ):
            self.claims.granted.add(("gradients-left-by-step", place.key))
            return
        assumption = f"`{fact.name}` is called for every batch"
        self.path.told_premises.add(assumption)
        steps_on = [Step("needed", steps[-1].site, "the step uses the gradients of all calls so far")]
        self.claims.add("gradients-left-by-step", place, steps_on, assumption, method=fact.name)

    def may_be_cleared(self, optimizer: Optimizer, fact: MethodReturned) -> bool:
        """Whether a method of the class that this path did not execute clears the gradients of this optimizer."""
        members: dict[str, object] = {}
        for one in fact.receiver.cls.lineage():
            if isinstance(one, ClassValue):
                for name, member in one.namespace.items():
                    members.setdefault(name, member)
        nodes: list[ast.AST] = [
            member.defined().node for member in members.values() if isinstance(member, Function)
        ]
        return any(self.clears(optimizer, node, fact, nodes) for node in nodes if node not in self.executed)

    def clears(
        self, optimizer: Optimizer, method: ast.AST, fact: MethodReturned, scopes: list[ast.AST]
    ) -> bool:
        """Whether a method has a `zero_grad` that is not the one of another optimizer, or of other modules."""
        cleared = [
            key_of(part.func.value)
            for part in syntax_parts(method)
            if isinstance(part, ast.Call)
            and isinstance(part.func, ast.Attribute)
            and part.func.attr == "zero_grad"
        ]
        own = fact.names.get(optimizer)
        return any(
            own is None or not self.is_for_others(key, own, optimizer, fact, scopes) for key in cleared
        )

    def is_for_others(
        self, key: str, own: str, optimizer: Optimizer, fact: MethodReturned, scopes: list[ast.AST]
    ) -> bool:
        """Whether what a key of the object spells is another optimizer, or a module whose parameters it does not hold."""
        owner, _, name = key.rpartition(".")
        if owner != "self" or name == own:
            return False
        value = fact.receiver.attributes.get(name)
        if isinstance(value, (Instance, Layer)) and value.module is not None:
            parameters = {tensor for _, tensor in self.path.tensors_of(value, "parameter")}
            is_known = self.path.knows_all_parameters(optimizer)
            return is_known and parameters.isdisjoint(self.path.ever_held_by(optimizer))
        return role_of(key, scopes) == OPTIMIZER
