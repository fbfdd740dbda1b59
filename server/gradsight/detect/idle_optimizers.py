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
from gradsight.detect.passed_arms import BUILTINS
from gradsight.detect.path import Path
from gradsight.detect.untrained_parameters import leaf_behind
from gradsight.interp.paths.roles import deeds_of, key_of, last_part, only_watches
from gradsight.interp.syntax_parts import parts_of, syntax_parts
from gradsight.interp.tensors.training import Action
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Cleared, DataAssigned, GradRead, Wrote
from gradsight.model.values import ClassValue, Function, Scope

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
KIND = "optimizer-never-stepped"
HARMLESS = {"zero_grad", "param_groups", "state_dict", "load_state_dict", "add_param_group"}
"""What may be asked of an optimizer that never steps."""
STEPPING = frozenset({"step", "optimizer", "optim"})
"""What steps it, or is what steps."""
UNSCALING = frozenset({"unscale_"})
"""What may be done with it to gradients that nobody uses."""
OFTEN = 3
"""So many rounds show what a loop does with an optimizer."""
BY_NAME = frozenset({"getattr", "attrgetter"})
SHOWING = frozenset({"print", "str", "repr", "type", "isinstance"})
OF_TEXTS = frozenset(dir(str))
"""What is called on words, and on no optimizer."""


class IdleOptimizers:
    """Looks for them when a path is over."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.are_gradients_read = self.are_updated_by_hand = False
        self.cleared: dict[Any, set[Tensor]] = {}
        """Whose gradients were cleared at a place."""

    def on_cleared(self, fact: Cleared) -> None:
        if fact.site is not None:
            self.cleared.setdefault(fact.site.key, set()).update(fact.tensors)

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

    def was_cleared_often(self, optimizer: Optimizer) -> bool:
        """Whether a loop has shown what it does with an optimizer before the path was left, and its text has no more for it."""
        clears = [one for one in self.path.log if one.loops and optimizer in self.optimizers_cleared(one)]
        if len(clears) < OFTEN:
            return False
        name, harmless = name_at(clears[-1], optimizer), self.stepless_calls()
        return bool(name) and not any(
            is_other_use(text, name, harmless) for text in texts_around(clears[-1].site)
        )

    def conclude(self, optimizer: Optimizer, name: str, steps: list[Action]) -> None:
        """Report at the step that took its place, else where it is made."""
        held = {tensor for other in self.path.optimizers if other is not optimizer
                for tensor in self.path.parameters_of(other)}  # fmt: skip
        own = set(self.path.parameters_of(optimizer)) - held
        runs = [
            action
            for action in self.path.log
            if action.verb == "backward"
            and action.loops
            and own & (action.leaves - action.subject.zero_leaves)
        ]
        if not runs or optimizer.site is None:
            return
        cleared = [a.tick for a in self.path.log if a.verb == "zero" and a.subject is optimizer]
        trained = [run for run in runs if any(tick < run.tick for tick in cleared)] or runs
        taken = next((step for step in steps if step.tick >= trained[-1].tick), None) or steps[-1]
        elsewhere = any(step.subject is taken.subject and step.site.key != taken.site.key for step in steps)
        place = taken.site if elsewhere else optimizer.site
        trail = [
            Step("call", trained[-1].site, "this backward computes gradients for it"),
            Step("made", optimizer.site, f"`{name}` is created here")
            if elsewhere
            else Step("needed", taken.site, "another optimizer steps here"),
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
            if any(is_other_use(text, name, harmless) for text in texts):
                continue
            trail = [Step("call", clear.site, "its gradients are cleared here, without having been used")]
            # Of an optimizer that is only given, a caller knows what the rounds are for, unless `train()` says it.
            is_switched = any(action.verb == "train" for action in self.path.log)
            is_guess = is_only_given(optimizer) and not is_switched and not self.is_training_meant()
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
        owner = clear.site.frame.receiver
        made_by = optimizer.site.frame.receiver if optimizer.site is not None else None
        if (
            owner is None
            or made_by is not owner
            or not self.path.has_receiver
            or comes_from_elsewhere(optimizer)
        ):
            return None
        if clear.site.guards:
            return None
        return next((one for one in runs if one.site.frame is clear.site.frame and not one.site.guards), None)

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
        """By which name an optimizer that a library was given without one is cleared."""
        if optimizer.site is None or not is_made_for_library(optimizer.site):
            return ""
        clears = [
            one for one in self.path.log if one.verb == "zero" and one.subject is optimizer and one.loops
        ]
        return name_cleared(clears[-1].site) if clears else ""

    def is_used_elsewhere(self, name: str, site: Site) -> bool:
        """Whether the text around does with the name of an optimizer what may step it; a script is executed as a whole.

        What a function returns to a library is in good hands: what the library does with it is executed.
        """
        making = site.frame.function
        if making is None:
            return False
        told = making.node if is_made_for_library(site) else None
        harmless = self.stepless_calls()
        for action in self.path.log:
            if action.verb == "zero" and getattr(action.subject, "site", None) is site:
                harmless |= called_on_the_way(action.site)
                if any(is_other_use(text, name, harmless, told) for text in texts_around(action.site)):
                    return True
        return any(is_other_use(statement, name, harmless, told) for statement in site.unit.tree)

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


def is_other_use(
    node: ast.AST, name: str, harmless: frozenset[str] = UNSCALING, told: ast.AST | None = None
) -> bool:
    """Whether something below, but for what was `told`, reads the name for more than to clear, save or schedule.

    It may be handed to what is `harmless`, and be bound to the same name elsewhere: `self.optimizer = optimizer`.
    """
    if isinstance(node, ast.Assign) and is_called_so(node.value, name) and len(node.targets) == 1:
        return not is_called_so(node.targets[0], name)
    for child in ast.iter_child_nodes(node):
        if child is told:
            continue
        if isinstance(child, ast.Attribute) and is_called_so(child.value, name):
            is_called = isinstance(node, ast.Call) and node.func is child
            if child.attr in HARMLESS or is_of_module(child.attr):
                continue
            if is_called and child.attr in OF_TEXTS:
                # `args.optimizer.lower()` is the word for one.
                continue
            if not is_called and child.attr not in STEPPING:
                # `config.optimizer.name`: what is read and not called steps nothing.
                continue
        given = idle_arguments(child, harmless)
        if any(is_called_so(one, name) for one in given):
            others = [one for one in given if not is_called_so(one, name)]
            if any(is_other_use(other, name, harmless, told) for other in others):
                return True
            continue
        if isinstance(child, ast.Compare) and any(is_word(one) for one in child.comparators):
            continue
        if is_called_so(child, name) and isinstance(getattr(child, "ctx", None), ast.Load):
            return True
        if isinstance(child, ast.Call) and last_part(key_of(child.func)) in BY_NAME:
            if any(isinstance(given, ast.Constant) and given.value == name for given in child.args):
                return True
        if is_other_use(child, name, harmless, told):
            return True
    return False


def idle_arguments(node: ast.AST, harmless: frozenset[str]) -> list[ast.expr]:
    """What a call that steps nothing is given, or a text is put together from."""
    if isinstance(node, ast.JoinedStr):
        return [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and is_word(node.left):
        return list(node.right.elts) if isinstance(node.right, ast.Tuple) else [node.right]
    if not isinstance(node, ast.Call):
        return []
    target, key = node.func, key_of(node.func)
    formats = isinstance(target, ast.Attribute) and target.attr == "format" and is_word(target.value)
    if formats or is_scheduler(node) or last_part(key) in harmless | SHOWING or only_watches(key):
        return arguments_of(node)
    return []


def is_word(node: ast.expr) -> bool:
    """`"adam"`, and what nothing but words are looked for in: `("adam", "sgd")`."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return bool(node.elts) and all(is_word(one) for one in node.elts)
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def arguments_of(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def is_called_so(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Attribute) and key_of(node) == "torch.optim":
        return False
    called: Any = getattr(node, "id", None) or getattr(node, "attr", None)
    return isinstance(node, (ast.Name, ast.Attribute)) and called == name


def is_of_module(name: str) -> bool:
    """`self.optim = optim.Adam(...)`: what torch's module of this name has, and no optimizer."""
    return name[:1].isupper() or name == "lr_scheduler"


def is_scheduler(call: ast.Call) -> bool:
    called = str(getattr(call.func, "attr", "") or getattr(call.func, "id", ""))
    return "LR" in called or "cheduler" in called
