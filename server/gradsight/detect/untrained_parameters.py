"""Parameters that a loss trains and no optimizer moves, and optimizers whose own parameters no loss reaches.

*Left out*: a backward reached the parameter, no optimizer of the path holds it, and nobody else does anything with it: it
is as it was made (loaded or copied weights are kept on purpose), its module is not in eval mode, its gradient is not read.
*Home*: the outermost module that a parameter belongs to.  A program leaves a parameter out by mistake where its own home is
trained in part, where what is trained stands behind it, or where the step that follows its backward is that of an optimizer
which has nothing to apply.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from gradsight.detect.chosen_parameters import chosen_at
from gradsight.detect.claims import Claims
from gradsight.detect.gradient_flow import DIFFERING, INITIALISING, is_stand_in, nodes_behind
from gradsight.detect.gradient_ledger import GradientLedger
from gradsight.detect.passed_arms import OPTIMIZERS
from gradsight.detect.path import Path
from gradsight.detect.picked_modules import picked_parameters
from gradsight.detect.replaced_parameters import ReplacedParameters
from gradsight.interp.paths.roles import is_follower_name, words_in_common
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.interp.tensors.training import Action
from gradsight.model.events import PARAMETERS_OF, Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.name_hints import suggests
from gradsight.model.sites import Site
from gradsight.model.tensors import Edge, Node, Tensor, leaves_of
from gradsight.model.trace import Copied, DataAssigned, Declared, GaveUp, GradRead, StateLoaded, Wrote
from gradsight.model.values import Instance, Layer, tensors_in

KIND = "parameters-not-optimized"
TELLING = {"before-super-init", "parameter-refused"}
"""What ends a program before it trains anything."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Parameters that one backward reached and nobody moves, with the step that followed.

    `is_only_step`: no other optimizer steps before the next backward, so that this one is for this loss.
    """

    run: Any
    parameters: list[Tensor]
    step: Action
    is_only_step: bool


@dataclass(frozen=True, slots=True)
class Missed:
    """Parameters that an optimizer should hold and does not; `home` is None where they stand for those of an unknown module."""

    left: LeftOut
    optimizer: Optimizer
    home: Any
    lost: list[tuple[str, Tensor]]
    owned: list[tuple[str, Tensor]]


class UntrainedParameters:
    """Compares what backwards reach with what optimizers hold, when a path is over and the others have spoken."""

    def __init__(
        self, path: Path, claims: Claims, ledger: GradientLedger, replaced: ReplacedParameters
    ) -> None:
        self.path = path
        self.claims = claims
        self.ledger = ledger
        self.replaced = replaced
        self.kept: set[Tensor] = set()
        """Parameters whose values somebody put there, or that are moved by hand."""
        self.given_away: set[Tensor] = set()
        """Parameters of modules that code which is not known was given."""
        self.maybe_frozen: set[Tensor] = set()
        """Parameters that code which is not known was given to switch off their gradients."""
        self.copies: set[Tensor] = set()
        """Parameters that were given the values of others of the program."""
        self.switched: set[Tensor] = set()
        """Parameters whose flag was switched off and on again: they rest while others train, and learn in between."""
        self.read_at: dict[Any, set[Tensor]] = {}
        """Where gradients were read, and whose."""

    def on_grad_read(self, fact: GradRead) -> None:
        """Somebody has a use for the gradient: `shared.grad = local.grad`."""
        self.read_at.setdefault(fact.site.node, set()).add(fact.tensor)

    # -- values that are meant to stay -------------------------------------------------------------------------------

    def on_state_loaded(self, fact: StateLoaded) -> None:
        written = [tensor for _, tensor in self.path.tensors_of(fact.module, "parameter")]
        self.kept.update(written)
        if any(tensor.source is not None or tensor.is_parameter for tensor in tensors_in(fact.state)):
            self.copies.update(written)

    def on_declared(self, fact: Declared) -> None:
        if fact.tensor in self.ledger.records:
            self.switched.add(fact.tensor)

    def on_copied(self, fact: Copied) -> None:
        made = self.replaced.parameters_in(fact.result)
        self.kept.update(made)
        self.copies.update(made)

    def on_data_assigned(self, fact: DataAssigned) -> None:
        self.kept.add(fact.tensor)

    def on_wrote(self, fact: Wrote) -> None:
        if fact.write.mode in ("no_grad", "silent") and not fact.op.startswith(INITIALISING):
            tensor = leaf_behind(fact.tensor)
            if tensor is not None:
                self.kept.add(tensor)
                if any(leaf_behind(other) is not None for other in fact.others):
                    self.copies.add(tensor)

    def on_gave_up(self, fact: GaveUp) -> None:
        """Code that is not known may load the weights of a module that it is given, or freeze them: then its name says so."""
        for value in fact.values:
            if isinstance(value, (Instance, Layer)) and value.module is not None:
                given = [tensor for _, tensor in self.path.tensors_of(value, "parameter")]
                self.kept.update(given)
                self.given_away.update(given)
                if suggests("freezes", fact.reason):
                    self.maybe_frozen.update(given)

    # -- at the end --------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        path = self.path
        optimizers = path.optimizers
        if not optimizers or (path.ended_at is not None and self.may_make_more()):
            return
        if any(
            event.kind in TELLING or event.names.get("cut") == "parameter" for event in self.claims.events
        ):
            return
        if not all(self.is_known(one) for one in optimizers):
            return
        held = {tensor for one in optimizers for tensor in self.held_by(one)}
        # What reads the gradients of all parameters (a norm, a log) has no use for those of some.
        asked_for = {leaf for leaf, _, _ in self.ledger.updates} | picked_parameters(path, held)
        for leaves in self.read_at.values():
            if not leaves & held:
                # A loop over the parameters of a module may be left before its end.
                asked_for |= self.with_whole_homes(leaves) if len(leaves) > 1 else leaves
        if asked_for and any(is_stand_in(tensor) for tensor in held):
            # A stand-in has fewer parameters than what it stands for: a loop over pairs of both ends too early.
            asked_for = self.with_whole_homes(asked_for)
        left_out = self.left_out(held, asked_for)
        homes = self.homes() if left_out else []
        missed = [self.missed_by(left, homes) for left in left_out]
        told: set[Tensor] = set()
        # Several losses may reach what one optimizer misses: it is told once, of the one that is named most like it.
        for one in sorted((one for one in missed if one is not None), key=self.weight, reverse=True):
            if not told.issuperset(tensor for _, tensor in one.lost):
                self.report(one)
            told.update(tensor for _, tensor in one.lost)
        reached = {leaf for run in path.backwards for leaf in run.leaves if leaf.is_parameter}
        self.grant(reached, held | asked_for)

    def grant(self, reached: set[Tensor], moved: set[Tensor]) -> None:
        """Where all that backwards reach of a module is moved, another path has no reason to miss it."""
        places: list[Any] = [None] if reached and reached <= moved else []
        for home in self.homes():
            own = reached.intersection(tensor for _, tensor in self.path.tensors_of(home, "parameter"))
            if own and own <= moved:
                places.append(place_of(home))
        stepped = [site.key for one in self.path.optimizers if one.stepped and (site := chosen_at(one))]
        self.claims.granted.update((KIND, (key, place)) for key in stepped for place in places)

    def is_known(self, optimizer: Optimizer) -> bool:
        """Whether the making of the optimizer shows what it holds: one that is not seen, or got groups later, may hold more."""
        return (
            (optimizer.path != "torch.optim.Optimizer" or optimizer.shows_all)
            and not optimizer.escaped
            and not optimizer.extended
            and (self.path.knows_all_parameters(optimizer) or bool(optimizer.rest_of))
        )

    def held_by(self, optimizer: Optimizer) -> set[Tensor]:
        """What an optimizer holds; where it does not list all, it may hold anything of the modules that those are from."""
        rest = {
            tensor for module in optimizer.rest_of for _, tensor in self.path.tensors_of(module, "parameter")
        }
        return self.path.ever_held_by(optimizer) | rest

    def may_make_more(self) -> bool:
        """Whether the text makes optimizers that a path has not come to, because it or a part of it was left before its end."""
        made = {one.site.node for one in self.path.optimizers if one.site is not None}
        texts = {one.site.unit for one in self.path.optimizers if one.site is not None}
        return any(
            isinstance(node, ast.Call) and node not in made and called_name(node) in OPTIMIZERS
            for unit in texts
            for statement in unit.tree
            for node in syntax_parts(statement)
        )

    def left_out(self, held: set[Tensor], asked_for: set[Tensor]) -> list[LeftOut]:
        """Per backward, what it reaches and nobody moves, and the first step after it."""
        found: list[LeftOut] = []
        log = self.path.log
        seen: set[Any] = set()
        for index, action in enumerate(log):
            if action.verb != "backward" or (action.site.key, len(action.leaves)) in seen:
                continue
            seen.add((action.site.key, len(action.leaves)))
            live = action.leaves - action.subject.zero_leaves
            settled = held | asked_for | self.claims.explained
            parameters = [leaf for leaf in live if leaf not in settled and self.is_forgotten(leaf)]
            step = next((later for later in log[index:] if later.verb == "step"), None)
            if parameters and step is not None:
                parameters.sort(key=lambda tensor: tensor.serial)
                following = log[log.index(step, index) + 1 :]
                others = takewhile(lambda later: later.verb != "backward", following)
                is_only = not any(later.verb == "step" for later in others)
                found.append(LeftOut(action.subject, parameters, step, is_only))
        return found

    def with_whole_homes(self, leaves: set[Tensor]) -> set[Tensor]:
        """Parameters, and all others of the modules that they belong to."""
        owned = [{tensor for _, tensor in self.path.tensors_of(home, "parameter")} for home in self.homes()]
        return leaves.union(*(parameters for parameters in owned if parameters & leaves))

    def is_forgotten(self, leaf: Tensor) -> bool:
        if not leaf.is_parameter or (leaf.requires_grad is not True and leaf not in self.switched):
            return False
        is_frozen = leaf.frozen_at is not None and leaf not in self.switched
        if is_frozen or leaf in self.replaced.maybe_earlier or leaf in self.maybe_frozen:
            return False
        record = self.ledger.records.get(leaf)
        return record is not None and record.state not in ("assigned", "masked")

    def missed_by(self, left: LeftOut, homes: list[Any]) -> Missed | None:
        """What of a module is left out, and the optimizer that should hold it; None where leaving it out can be meant."""
        for home in homes:
            owned = list(self.path.tensors_of(home, "parameter"))
            lost = [(name, tensor) for name, tensor in owned if tensor in left.parameters]
            if not lost or not self.is_in_train_mode(home, {tensor for _, tensor in lost}, left.run.tick):
                continue
            optimizer = self.optimizer_meant(left, home, {tensor for _, tensor in owned})
            if optimizer is None or optimizer.site is None or self.fits_inputs(optimizer):
                continue
            return Missed(left, optimizer, home, lost, owned)
        return self.missed_unknown(left) or self.missed_alone(left, homes)

    def missed_alone(self, left: LeftOut, homes: list[Any]) -> Missed | None:
        """`scale = nn.Parameter(torch.ones(1))`, which no module has: who makes a parameter wants it trained."""
        owned = {tensor for home in homes for _, tensor in self.path.tensors_of(home, "parameter")}
        alone = [one for one in left.parameters if one not in owned | self.kept and not is_stand_in(one)]
        lost = [("", one) for one in alone if one.label and one.leaf_made]
        optimizer = next((one for one in self.path.optimizers if one is left.step.subject), None)
        if not lost or not left.is_only_step or optimizer is None or optimizer.site is None:
            return None
        if any(event.kind == "not-registered" for event in self.claims.events):
            return None
        if self.fits_inputs(optimizer) or self.path.escaped_between(
            {one for _, one in lost}, 0, self.path.tick
        ):
            return None
        return Missed(left, optimizer, None, lost, lost)

    def missed_unknown(self, left: LeftOut) -> Missed | None:
        """A module that is not known is trained by a step that moves only what another optimizer moves as well."""
        lost = [("", tensor) for tensor in left.parameters if is_stand_in(tensor)]
        stepped = [one for one in self.path.optimizers if one.stepped]
        optimizer = next((one for one in stepped if one is left.step.subject), None)
        if not lost or not left.is_only_step or optimizer is None or optimizer.site is None:
            return None
        if self.fits_inputs(optimizer):
            return None
        return (
            Missed(left, optimizer, None, lost, lost) if self.is_held_by_others(optimizer, stepped) else None
        )

    def fits_inputs(self, optimizer: Optimizer) -> bool:
        """Whether an optimizer moves plain tensors alone: an image, a pose; the module that judges them is a given one."""
        held = self.held_by(optimizer)
        return bool(held) and not any(one.is_parameter for one in held)

    def weight(self, missed: Missed) -> tuple[int, int]:
        """What is told first: where more is left out, then by the optimizer's name."""
        if missed.home is None:
            return len(missed.lost), 0
        parts = [name for name, _ in missed.lost]
        return len(missed.lost), self.words_shared(missed.optimizer, missed.home, parts)

    def report(self, missed: Missed) -> None:
        left, site, home = missed.left, chosen_at(missed.optimizer), missed.home
        if site is None:
            return
        if home is None:
            name, how, count = missed.lost[0][1].label.removesuffix(PARAMETERS_OF), "whole", 1
        else:
            spoken, count = self.name_of(home, site), len(missed.lost)
            if is_of_library(home) and count < len(missed.owned):
                name, how = f"a part of `{spoken}`", "part"
            else:
                name, how = self.words_for(spoken, missed.lost, missed.owned)
        steps = [
            Step("call", left.run.site, "this backward computes their gradients"),
            Step("needed", left.step.site, "this step does not move them"),
        ]
        place = (site.key, place_of(home))
        self.claims.add(KIND, site, steps, parameters=name, count=count, how=how, granted_at=place)
        # One mistake is one warning: a step of this optimizer has nothing to apply for the same reason.
        self.claims.events[:] = [
            event for event in self.claims.events if event.kind != "step-without-backward"
        ]

    def optimizer_meant(self, left: LeftOut, home: Any, owned: set[Tensor]) -> Optimizer | None:
        """The optimizer that should hold what is left out, or None where leaving it out can be meant."""
        stepped = [one for one in self.path.optimizers if one.stepped]
        partly = [one for one in stepped if owned & self.held_by(one)]
        is_cut_off = any(event.kind == "path-cut" for event in self.claims.events)
        idle = [] if is_cut_off else [one for one in stepped if self.has_nothing_to_apply(one)]
        doubled = [
            one
            for one in self.path.optimizers
            if any(
                other is not one and self.held_by(one) == self.held_by(other)
                for other in self.path.optimizers
            )
        ]
        at_step: Optimizer | None = next((one for one in stepped if one is left.step.subject), None)
        if left.is_only_step and at_step is not None and self.is_held_by_others(at_step, stepped):
            return at_step
        if all(is_stand_in(tensor) for tensor in owned & set(left.parameters)):
            # What an unknown layer holds may be what another unknown one holds.
            return None
        if at_step in idle:
            if owned & set(left.parameters) <= self.given_away and all(
                map(is_stand_in, self.held_by(at_step))
            ):
                # `model = task.trainable()` may be what `task` was given.
                return None
            return at_step
        if doubled:
            # Of two that hold the same, the one whose name has most in common with what is left out, or else the later one.
            parts = [
                name for name, tensor in self.path.tensors_of(home, "parameter") if tensor in left.parameters
            ]
            return max(reversed(doubled), key=lambda one: self.words_shared(one, home, parts))
        if idle:
            return idle[-1]
        if self.kept.issuperset(owned & set(left.parameters)) and not any(
            # What was loaded as a whole is trained as a whole; a fresh part of it is trained on top of the others.
            self.kept.issuperset(owned & self.held_by(one))
            for one in partly
        ):
            return None
        copied = [one for one in stepped if self.copies and self.held_by(one) <= self.copies]
        if copied:
            return copied[-1]
        meant = partly or [
            one
            for one in stepped
            if self.stands_behind(left, self.held_by(one)) or self.holds_a_twin(left, home, one)
        ]
        if not meant and at_step is not None and left.is_only_step and self.is_head_of(at_step, left, home):
            return at_step
        return at_step if at_step in meant else next(iter(meant), None)

    def is_head_of(self, optimizer: Optimizer, left: LeftOut, home: Any) -> bool:
        """Whether a module of the program's own, fresh and for nobody else, has a part in a loss that the optimizer is for.

        It computes with what the optimizer's parameters gave, or stands beside them: a second tower, a second head.
        """
        lost = {tensor for _, tensor in self.path.tensors_of(home, "parameter")} & set(left.parameters)
        # Centers of classes, weights of losses: tensors of the module's own, and no layer of it that might only score.
        is_bare = isinstance(home, Instance) and lost.isdisjoint(self.replaced.made_at)
        site = chosen_at(optimizer)
        if site is None or is_of_library(home):
            return False
        if not is_bare and not lost <= self.replaced.made_at.keys():
            return False
        if self.path.context != "script" and not is_made_beside(home, optimizer):
            return False
        if is_follower_name(self.name_of(home, site)):
            return False
        if any(action.verb == "zero" and action.subject is home for action in self.path.log):
            # Whoever clears it by itself knows that its gradients are left over.
            return False
        held = {one for one in self.held_by(optimizer) if one in self.replaced.made_at or is_stand_in(one)}
        if lost & self.kept or not held & left.run.leaves:
            return False
        return is_bare or is_held_to_data(left.run, lost)

    def words_shared(self, optimizer: Optimizer, home: Any, parts: list[str] | None = None) -> int:
        """How many words the names of an optimizer and a module, or parts of it, share: it breaks a tie."""
        site = chosen_at(optimizer)
        if site is None:
            return 0
        known = dict(site.frame.namespace)
        if isinstance(site.frame.receiver, Instance):
            known.update(site.frame.receiver.attributes)
        own = next((name for name, value in known.items() if value is optimizer), "")
        names = [self.name_of(home, site), *{name.partition(".")[0] for name in parts or ()}]
        return max(len(words_in_common(own, name)) for name in names)

    def holds_a_twin(self, left: LeftOut, home: Any, optimizer: Optimizer) -> bool:
        """Whether the same loss trains another module of the same class, and the optimizer holds that one."""
        if not isinstance(home, Instance):
            return False
        trained = self.held_by(optimizer) & left.run.leaves
        return any(
            isinstance(other, Instance)
            and other is not home
            and other.cls is home.cls
            and bool(trained.intersection(tensor for _, tensor in self.path.tensors_of(other, "parameter")))
            for other in self.path.modules_made
        )

    def is_held_by_others(self, optimizer: Optimizer, stepped: list[Optimizer]) -> bool:
        """Whether all that an optimizer holds is moved by others as well; one of an earlier round is no other."""
        mine, place = self.held_by(optimizer), chosen_at(optimizer)
        key = place.key if place is not None else None
        others = {
            tensor
            for one in stepped
            if one is not optimizer and ((other := chosen_at(one)) is None or other.key != key)
            for tensor in self.held_by(one)
        }
        return bool(mine) and mine <= others

    def has_nothing_to_apply(self, optimizer: Optimizer) -> bool:
        """Whether no backward reached a parameter of the optimizer."""
        mine = self.held_by(optimizer)
        return (
            bool(mine)
            and not self.path.gradients_unknown
            and not any(action.verb == "backward" and mine & action.leaves for action in self.path.log)
        )

    def stands_behind(self, left: LeftOut, held: set[Tensor]) -> bool:
        """Whether what the optimizer holds computes with what the left-out parameters gave."""
        if not any(parameter in self.replaced.made_at for parameter in held):
            # A tensor of its own (a prompt, a perturbation) is trained through networks that stay as they are.
            return False
        return computes_with(left.run, held, set(left.parameters))

    # -- modules -----------------------------------------------------------------------------------------------------

    def homes(self) -> list[Any]:
        """The modules that are part of no other."""
        inner = {
            id(child)
            for module in self.path.modules_made
            for _, child in self.path.modules_in(module)
            if child is not module
        }
        return [module for module in self.path.modules_made if id(module) not in inner]

    def is_in_train_mode(self, home: Any, lost: set[Tensor], tick: int) -> bool:
        """Whether the last switch of a part that holds all that is left out was to train mode.

        A smaller part, such as frozen batch norms, has a mode of its own.
        """
        parts = {id(part) for _, part in self.path.modules_in(home)}
        switches = [
            action
            for action in self.path.log
            if action.verb in ("eval", "train") and id(action.subject) in parts and action.tick <= tick
            if lost <= {tensor for _, tensor in self.path.tensors_of(action.subject, "parameter")}
        ]
        return not switches or switches[-1].verb == "train"

    def words_for(
        self, home: str, lost: list[tuple[str, Tensor]], owned: list[tuple[str, Tensor]]
    ) -> tuple[str, str]:
        """How to speak of what is left out: the whole module, a part of it, or single parameters."""
        if len(lost) == len(owned):
            return home, "whole"
        parts = list(dict.fromkeys(name.partition(".")[0] for name, _ in lost))
        whole = [
            part
            for part in parts
            if all(
                tensor in {lost_one for _, lost_one in lost}
                for name, tensor in owned
                if name.partition(".")[0] == part
            )
        ]
        listed = [part_of(home, part) for part in whole or [name for name, _ in lost]]
        return ", ".join(listed), "part"

    def name_of(self, home: Any, optimizer: Site) -> str:
        """How the code that makes the optimizer names a module."""
        if optimizer.frame.receiver is home:
            return "self"
        site: Site | None = getattr(home, "site", None)
        for frame in (optimizer.frame, self.path.frame, *([site.frame] if site is not None else [])):
            for name, value in frame.namespace.items():
                if value is home:
                    return name
        return self.replaced.name_bound_at(site) if site is not None else "the model"


def place_of(home: Any) -> Any:
    """Where a module is made, by which paths know it again."""
    site: Site | None = getattr(home, "site", None)
    return site.key if site is not None else None


def is_made_beside(home: Any, optimizer: Optimizer) -> bool:
    """Whether one call made a module and the optimizer: whoever makes the one knows of the other."""
    site: Site | None = getattr(home, "site", None)
    chosen = chosen_at(optimizer)
    return site is not None and chosen is not None and site.frame is chosen.frame


def is_of_library(module: Any) -> bool:
    """Whether a module is one of our models of libraries: what its parts are called there is not known."""
    unit = module.cls.unit if isinstance(module, Instance) else None
    return unit is not None and bool(unit.library)


def part_of(home: str, part: str) -> str:
    """How the program would name a part of a module."""
    return f"{home}[{part}]" if part.isdigit() else f"{home}.{part}"


def leaf_behind(tensor: Tensor) -> Tensor | None:
    """The parameter whose memory this is."""
    steps = 0
    current: Tensor | None = tensor
    while current is not None and not current.is_parameter and steps < 8:
        current = current.source
        steps += 1
    return current if current is not None and current.is_parameter else None


def called_name(call: ast.Call) -> str:
    """The last word of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def is_held_to_data(run: Any, leaves: set[Tensor]) -> bool:
    """Whether what was computed with these leaves is compared with data.

    A critic that only scores what others do has nothing to learn from that: `-critic(actor(state)).mean()`.
    """
    return any(
        (node.op in DIFFERING or node.op.lower().endswith(("loss", "with_logits")))
        and any(operand.needs_grad() is False and operand.shape != () for operand in node.operands)
        and bool(leaves_of([node]) & leaves)
        for node in nodes_behind(run.loss.edge())
    )


def computes_with(run: Any, users: set[Tensor], givers: set[Tensor]) -> bool:
    """Whether an operator with one of the first tensors got what others had computed with one of the second."""
    todo: list[Edge] = [edge] if (edge := run.loss.edge()) is not None else []
    seen: set[Node] = set()
    before: list[Edge] = []
    while todo:
        current = todo.pop()
        if isinstance(current, Node) and current not in seen:
            seen.add(current)
            todo.extend(current.inputs)
            if any(inner in users for inner in current.inputs if isinstance(inner, Tensor)):
                before.extend(inner for inner in current.inputs if isinstance(inner, Node))
    return bool(leaves_of(before) & givers)
