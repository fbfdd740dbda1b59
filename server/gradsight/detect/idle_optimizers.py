"""Optimizers that are never stepped, although a loss trains their parameters: another one steps on it, or none at all.

Where nothing steps, a loop says that it trains by clearing what each of its rounds computes; who reads the gradients in
between wants those alone (a saliency map, the Fisher information).

That nobody steps is read from the text as well: its name stands nowhere but where it is made, cleared, saved or scheduled,
or handed to a function that was executed and whose text steps nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.optimizer_uses import UNSCALING, Called, bound_pairs, called, is_other_use
from gradsight.detect.passed_arms import BUILTINS
from gradsight.detect.path import Path
from gradsight.detect.untrained_parameters import leaf_behind
from gradsight.interp.paths.roles import deeds_of, key_of, last_part
from gradsight.interp.syntax_parts import parts_of, syntax_parts
from gradsight.interp.tensors.training import Action
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Cleared, DataAssigned, GradRead, Scaled, Wrote
from gradsight.model.values import ClassValue, Function, Scope

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
KIND = "optimizer-never-stepped"
OFTEN = 3
"""So many rounds show what a loop does with an optimizer."""


class IdleOptimizers:
    """Looks for them when a path is over."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.are_gradients_read = self.are_updated_by_hand = self.are_gradients_scaled = False
        self.cleared: dict[Any, set[Tensor]] = {}
        """Whose gradients were cleared at a place."""

    def on_cleared(self, fact: Cleared) -> None:
        if fact.site is not None:
            self.cleared.setdefault(fact.site.key, set()).update(fact.tensors)

    def on_scaled(self, _: Scaled) -> None:
        self.are_gradients_scaled = True

    def on_grad_read(self, _: GradRead) -> None:
        self.are_gradients_read = True

    def on_wrote(self, fact: Wrote) -> None:
        if fact.write.mode in ("no_grad", "silent") and leaf_behind(fact.tensor) is not None:
            self.are_updated_by_hand = self.are_gradients_read

    def on_data_assigned(self, _: DataAssigned) -> None:
        self.are_updated_by_hand = self.are_gradients_read

    def finish(self) -> None:
        path = self.path
        steps = [action for action in path.log if action.verb == "step"]
        if not steps:
            # The text tells, also of what was not executed any more, or not followed.
            is_for_step = not self.are_updated_by_hand and self.is_training_meant()
            if (is_for_step or not self.are_gradients_read) and not path.gradients_hooked:
                self.conclude_no_step()
                is_whole = not (path.decisions or path.waiting or path.ended_early or path.is_abridged)
                if path.context == "script" and is_whole:
                    self.conclude_not_reached()
            return
        if path.gradients_unknown:
            return
        for optimizer in path.optimizers:
            if optimizer.stepped and optimizer.site is not None:
                self.claims.granted.add((KIND, str(optimizer.site.key)))
            if optimizer.stepped or optimizer.escaped or optimizer.site is None or optimizer.is_global:
                # One that the module made may be stepped by other functions.
                continue
            if path.ended_early and not self.was_cleared_often(optimizer):
                continue
            name = name_of(optimizer.site) or self.cleared_name(optimizer)
            if name and not self.is_used_elsewhere(name, optimizer.site):
                self.conclude(optimizer, name, steps)

    def is_training_meant(self) -> bool:
        """Whether gradients are clipped, or a schedule goes on: who reads them besides wants to see them."""
        return any(action.verb in ("clip", "scheduler") for action in self.path.log)

    def is_loop_of_training(self, clear: Action) -> bool:
        """Whether the code around a clear switches to train mode, clips, schedules or scales, or repeats its rounds in epochs."""
        is_switched = any(action.verb == "train" for action in self.path.log)
        is_repeated = len(clear.loops) > 1 or self.are_gradients_scaled
        return is_switched or is_repeated or self.is_training_meant()

    def was_cleared_often(self, optimizer: Optimizer) -> bool:
        """Whether a loop has shown what it does with an optimizer before the path was left, and its text has no more for it."""
        clears = [one for one in self.path.log if one.loops and optimizer in self.optimizers_cleared(one)]
        if len(clears) < OFTEN:
            return False
        name, harmless = name_at(clears[-1], optimizer), self.stepless_calls()
        known = called(name, clears[-1].site)
        return bool(name) and not any(
            is_other_use(text, known, harmless) for text in texts_around(clears[-1].site)
        )

    def conclude(self, optimizer: Optimizer, name: str, steps: list[Action]) -> None:
        """Report at the step that took its place, else where it is made."""
        held = {tensor for other in self.path.optimizers if other is not optimizer
                for tensor in self.path.parameters_of(other)}  # fmt: skip
        own = set(self.path.parameters_of(optimizer)) - held
        clears = [a for a in self.path.log if a.verb == "zero" and a.subject is optimizer]
        runs = [
            action
            for action in self.path.log
            if action.verb == "backward"
            and (action.loops or any(self.is_one_method(clear, action, optimizer) for clear in clears))
            and own & (action.leaves - action.subject.zero_leaves)
        ]
        if not runs or optimizer.site is None:
            return
        cleared = [clear.tick for clear in clears]
        # The first one after the last time that its gradients were cleared.
        trained = [run for run in runs if cleared and run.tick > cleared[-1]][:1] or runs
        taken = next((step for step in steps if step.tick >= trained[-1].tick), None) or steps[-1]
        # What stands in its place stands where it would, under the same conditions.
        elsewhere = set(taken.site.guards) <= {*optimizer.site.guards, *trained[-1].site.guards} and any(
            step.subject is taken.subject and step.site.key != taken.site.key for step in steps
        )
        place = taken.site if elsewhere else optimizer.site
        # A step that nothing stands around needs no turn of its own to be taken.
        known = {*optimizer.site.guards, *trained[-1].site.guards}
        witness = next((step for step in steps if known.issuperset(step.site.guards)), taken)
        trail = [
            Step("call", trained[-1].site, "this backward computes gradients for it"),
            Step("made", optimizer.site, f"`{name}` is created here")
            if elsewhere
            else Step("needed", witness.site, "another optimizer steps here"),
        ]
        self.claims.add(KIND, place, trail, optimizer=name, granted_at=str(optimizer.site.key))

    def conclude_no_step(self) -> None:
        """Each round clears and differentiates, and the text does nothing else with the optimizer.

        A round is one of a loop, or a call of a method of the object that made the optimizer.
        """
        clears = [(one, held) for one in self.path.log for held in self.optimizers_cleared(one)]
        for clear, optimizer in clears:
            if optimizer.escaped or optimizer.site is None:
                continue
            run = self.run_beside(clear, optimizer)
            name = name_at(clear, optimizer)
            if run is None or not name:
                continue
            harmless = self.stepless_calls() | called_on_the_way(clear.site)
            texts = texts_around(clear.site)
            if not clear.loops:
                texts += texts_beside(clear.site)
            known = called(name, clear.site)
            if any(is_other_use(text, known, harmless) for text in texts):
                continue
            trail = [Step("call", clear.site, "its gradients are cleared here, without having been used")]
            # Of an optimizer that is only given, a caller knows what the rounds are for, unless the code says it.
            is_guess = is_only_given(optimizer) and not self.is_loop_of_training(clear)
            left_to = {"left_to": "caller"} if is_guess else {}
            self.claims.add(
                KIND, run.site, trail, optimizer=name, granted_at=str(optimizer.site.key), **left_to
            )

    def run_beside(self, clear: Action, optimizer: Optimizer) -> Action | None:
        """The backward for an optimizer in the same loop as what clears it, or beside it in a method of the object that made it."""
        own = self.path.ever_held_by(optimizer)
        runs = [
            one
            for one in self.path.log
            if one.verb == "backward" and own & (one.leaves - one.subject.zero_leaves)
        ]
        if clear.loops:
            innermost = clear.loops[-1][0]
            return next((one for one in runs if any(loop is innermost for loop, _ in one.loops)), None)
        if clear.site.guards:
            # Where nothing at all is stepped, the turn that clears may be one of another use.
            return None
        return next((one for one in runs if self.is_one_method(clear, one, optimizer)), None)

    def is_one_method(self, clear: Action, run: Action, optimizer: Optimizer) -> bool:
        """Whether a method of the object that made an optimizer clears and differentiates, itself or by what it calls."""
        owner = clear.site.frame.receiver
        made_by = optimizer.site.frame.receiver if optimizer.site is not None else None
        if owner is None or made_by is not owner or not self.path.has_receiver:
            return False
        if comes_from_elsewhere(optimizer) or clear.site.guards != run.site.guards:
            return False
        frames = [run.site.frame]
        while frames[-1].call_site is not None:
            frames.append(frames[-1].call_site.frame)
        return any(frame is clear.site.frame for frame in frames)

    def optimizers_cleared(self, action: Action) -> list[Optimizer]:
        """The optimizers all of whose gradients an action clears: its own, or by the module that has their parameters."""
        if action.verb != "zero":
            return []
        if isinstance(action.subject, Optimizer):
            return [action.subject]
        tensors = self.cleared.get(action.site.key, set())
        return [
            one
            for one in self.path.optimizers
            if (held := set(self.path.parameters_of(one))) and held <= tensors
        ]

    def conclude_not_reached(self) -> None:
        """A script whose every condition is known comes to no step: its loops are too short for the one that it has."""
        if self.are_updated_by_hand or self.path.gradients_unknown:
            return
        if any(event.kind == KIND for event in self.claims.events):
            return
        for optimizer in self.path.optimizers:
            own = self.path.ever_held_by(optimizer)
            runs = [one for one in self.path.log if one.verb == "backward" and one.loops]
            runs = [one for one in runs if own & (one.leaves - one.subject.zero_leaves)]
            name = name_of(optimizer.site) if optimizer.site is not None else ""
            if len(runs) < OFTEN or optimizer.escaped or optimizer.site is None or not name:
                continue
            trail = [Step("call", runs[-1].site, "this backward computes gradients for it")]
            self.claims.add(KIND, optimizer.site, trail, optimizer=name, granted_at=str(optimizer.site.key))

    def cleared_name(self, optimizer: Optimizer) -> str:
        """By which name an optimizer is cleared that a library was given without one, or that its file was given."""
        if optimizer.site is None:
            return ""
        clears = [
            one for one in self.path.log if one.verb == "zero" and one.subject is optimizer and one.loops
        ]
        name = name_cleared(clears[-1].site) if clears else ""
        return name if is_made_for_library(optimizer.site) or is_bound(name, optimizer.site) else ""

    def is_used_elsewhere(self, name: str, site: Site) -> bool:
        """Whether the text around does with the name of an optimizer what may step it; a script is executed as a whole.

        What a function returns to a library is in good hands: what the library does with it is executed.
        """
        making = site.frame.function
        if making is None:
            return False
        told = making.node if is_made_for_library(site) else None
        known = called(name, site)
        harmless = self.stepless_calls()
        for action in self.path.log:
            if action.verb == "zero" and getattr(action.subject, "site", None) is site:
                harmless |= called_on_the_way(action.site)
                if any(is_other_use(text, known, harmless, told) for text in texts_around(action.site)):
                    return True
        return any(is_other_use(statement, known, harmless, told) for statement in site.unit.tree)

    def stepless_calls(self) -> frozenset[str]:
        """The names of functions that were executed and whose text steps nothing, in no arm of it.

        So are those that the code which clears can call, was not seen to, and that hand on nothing that they are given.
        """
        named = [node for node in self.path.executed if isinstance(node, FUNCTIONS)]
        seen = {
            scope for action in self.path.log if action.verb == "zero" for scope in scopes_of(action.site)
        }
        for scope in seen:
            found = [value.node for value in scope.names.values() if isinstance(value, Function)]
            named += [node for node in found if isinstance(node, FUNCTIONS) and hands_nothing_on(node)]
        stepping = {node.name for node in named if steps_something(node)}
        return frozenset(node.name for node in named) - stepping | UNSCALING


def comes_from_elsewhere(optimizer: Optimizer) -> bool:
    """Whether nothing shows where an optimizer was made."""
    return optimizer.path == "torch.optim.Optimizer" and not optimizer.shows_all


def is_only_given(optimizer: Optimizer) -> bool:
    """Whether the function at hand was given an optimizer of which nothing shows where it comes from."""
    if not comes_from_elsewhere(optimizer) or optimizer.site is None:
        return False
    node, function = optimizer.site.node, optimizer.site.frame.function
    given = parts_of(function.node.args, ast.arg) if function is not None else ()
    return isinstance(node, ast.arg) or any(getattr(node, "id", "") == one.arg for one in given)


def texts_around(site: Site) -> list[ast.AST]:
    """What may step an optimizer that a place speaks of: the functions that led to it, with the classes that they belong to."""
    found: list[ast.AST] = []
    frame: Frame | None = site.frame
    while frame is not None:
        if frame.function is None:
            found.extend(frame.unit.tree)
        else:
            owner = getattr(frame.owner, "node", None)
            found.append(owner if owner is not None else frame.function.node)
        frame = frame.call_site.frame if frame.call_site is not None else None
    return found


def texts_beside(site: Site) -> list[ast.AST]:
    """What else the file of a place defines, or does when it is imported: whoever has the object may step its optimizer."""
    found: list[ast.AST] = list(site.unit.tree)
    for scope in scopes_of(site):
        for value in scope.names.values():
            if isinstance(value, (Function, ClassValue)) and value.node is not None:
                found.append(value.node)
    return found


def called_on_the_way(site: Site) -> frozenset[str]:
    """The functions that led to a place: their texts are looked at for themselves."""
    found: set[str] = set()
    frame: Frame | None = site.frame
    while frame is not None and frame.call_site is not None:
        found.add(frame.name)
        frame = frame.call_site.frame
    return frozenset(found)


def scopes_of(site: Site) -> Iterator[Scope]:
    """Where the names come from that the functions which led to a place can use, but for their own."""
    frame: Frame | None = site.frame
    while frame is not None:
        scope: Scope | None = frame.scope
        while scope is not None:
            yield scope
            scope = scope.outer
        frame = frame.call_site.frame if frame.call_site is not None else None


def hands_nothing_on(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function gives none of its arguments to another: `for group in optimizer.param_groups: group["lr"] = rate`."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    deeds = deeds_of(function)
    optimizers = [one for one in given if "param_groups" in deeds.attributes.get(one.arg, ())]
    return not (function.args.vararg or function.args.kwarg) and not any(
        deeds.arguments.get(one.arg, set()) - BUILTINS for one in optimizers or given
    )


def steps_something(function: ast.AST) -> bool:
    """Whether its text has the method `step` of anything; `epoch // options.step` is a number."""
    computed = {
        side
        for part in parts_of(function, ast.BinOp)
        if isinstance(part, ast.BinOp)
        for side in (part.left, part.right)
    }
    return any(
        isinstance(part, ast.Attribute) and part.attr == "step" and part not in computed
        for part in parts_of(function, ast.Attribute)
    )


def name_of(site: Site) -> str:
    """The name or attribute that is given what is made at a place, and nothing else."""
    for statement in (inner for part in site.unit.tree for inner in syntax_parts(part)):
        if isinstance(statement, ast.Assign) and statement.value is site.node:
            target = statement.targets[0]
            return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
    return ""


def is_bound(name: str, site: Site) -> bool:
    """Whether the file of a place gives something this name, or the function at hand was given it by that name."""
    function = site.frame.function
    given = parts_of(function.node.args, ast.arg) if function is not None else ()
    return bool(name) and (
        any(one.arg == name for one in given)
        or any(
            Called(name).fits(target)
            for statement in (inner for part in site.unit.tree for inner in syntax_parts(part))
            if isinstance(statement, ast.Assign)
            for target, _ in bound_pairs(statement)
        )
    )


def is_made_for_library(site: Site) -> bool:
    """Whether a library has called the function that makes it."""
    call = site.frame.call_site
    return call is not None and bool(call.frame.unit.library)


def name_cleared(site: Site) -> str:
    """What stands before `.zero_grad()`."""
    return last_part(key_of(getattr(getattr(site.node, "func", None), "value", None)))


def name_at(clear: Action, optimizer: Optimizer) -> str:
    """How the code that clears the gradients of an optimizer names it, also where it clears them by the module."""
    if clear.subject is optimizer:
        return name_cleared(clear.site)
    frame: Frame | None = clear.site.frame
    while frame is not None:
        held = getattr(frame.receiver, "attributes", None) or {}
        for name, value in [*frame.namespace.items(), *held.items()]:
            if value is optimizer:
                return str(name)
        frame = frame.call_site.frame if frame.call_site is not None else None
    return ""
