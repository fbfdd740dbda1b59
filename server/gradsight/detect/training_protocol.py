"""The protocol of training, judged at the end of a path: what was cleared, stepped, frozen, replaced, kept alive."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from itertools import pairwise, takewhile
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.frozen_parameters import frozen_places, may_thaw
from gradsight.detect.gradient_ledger import GradientLedger
from gradsight.detect.partly_cleared import is_cleared
from gradsight.detect.path import Path
from gradsight.detect.picked_modules import picked_parameters
from gradsight.detect.replaced_parameters import ReplacedParameters
from gradsight.interp.library_places import is_of_library
from gradsight.interp.paths.roles import deeds_of
from gradsight.interp.syntax import called_attribute, own_statements
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.interp.tensors.training import Action
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor, leaves_of
from gradsight.model.trace import AttributeSet, Stepped, Stepping
from gradsight.model.values import ClassValue, Instance, Layer

BLOCKS = frozenset({"nn.ModuleList", "nn.ModuleDict", "nn.Sequential"})


class TrainingProtocol:
    """Conclusions about the training loop."""

    def __init__(
        self, path: Path, claims: Claims, ledger: GradientLedger, replaced: ReplacedParameters
    ) -> None:
        self.path = path
        self.claims = claims
        self.ledger = ledger
        self.replaced = replaced
        self.last_stepping: tuple[Optimizer, Site, int] | None = None
        self.switches: list[Action] = []
        self.set_by_hand = -1
        """When a mode was last put back by an assignment to `training`."""
        self.read = 0
        self.last_read: Action | None = None

    def finish(self) -> None:
        if not self.path.gradients_hooked:
            for optimizer in self.path.optimizers:
                self.conclude_optimizer(optimizer)
        if not self.path.gradients_unknown:
            self.conclude_updates()
        self.conclude_order()

    # -- optimizers --------------------------------------------------------------------------------------------------

    def touches(self, action: Action, parameters: set[Tensor]) -> bool:
        """Whether a backward reached, or a zero cleared, one of these parameters."""
        if action.verb == "backward":
            return not parameters or bool(parameters & set(action.leaves))
        if isinstance(action.subject, Optimizer):
            return not parameters or bool(parameters & set(self.path.parameters_of(action.subject)))
        return bool(parameters & {tensor for _, tensor in self.path.tensors_of(action.subject, "parameter")})

    def conclude_optimizer(self, optimizer: Optimizer) -> None:
        if optimizer.escaped or optimizer.is_guessed():
            return
        parameters = self.path.ever_held_by(optimizer)
        if not parameters:
            return
        steps = [action for action in self.path.log if action.verb == "step" and action.subject is optimizer]
        if not steps:
            return
        backwards = [
            action
            for action in self.path.log
            if action.verb == "backward" and self.touches(action, parameters)
        ]
        is_all_known = self.path.knows_all_parameters(optimizer) and not self.path.gradients_unknown
        if not backwards:
            if (is_all_known and not self.may_be_shared(parameters)) or self.are_idle(parameters):
                self.conclude_no_backward(optimizer, steps[0], parameters)
            return
        self.claims.granted.update(("step-without-backward", step.site.key) for step in steps)
        # A backward that may have reached more than is known clears nothing.
        self.conclude_clearing(optimizer, steps, backwards, parameters)
        if is_all_known:
            self.conclude_foreign(optimizer, steps, backwards)

    def may_be_shared(self, parameters: set[Tensor]) -> bool:
        """Whether unknown code was given these, and a backward reaches an unknown module: one that may be made of them."""
        return any(
            (leaf.attributes or {}).get("<stand in>") for run in self.path.backwards for leaf in run.leaves
        ) and self.path.escaped_between(parameters, 0, self.path.tick)

    def are_idle(self, parameters: set[Tensor]) -> bool:
        """Whether nothing but the optimizer was ever given these: no backward reaches them, however much of its graph is open."""
        if parameters & self.ledger.used or self.path.escaped_between(parameters, 0, self.path.tick):
            return False
        # Of a long list of blocks not every one is applied here.
        return not any(
            parameters & held and held & self.ledger.used
            for module in self.path.modules_made
            for part in module.attributes.values()
            if isinstance(part, Layer) and part.name in BLOCKS
            for held in ({tensor for _, tensor in self.path.tensors_of(part, "parameter")},)
        )

    def conclude_no_backward(self, optimizer: Optimizer, step: Action, parameters: set[Tensor]) -> None:
        if any(parameter in self.path.gradient_ticks for parameter in parameters) or self.path.ended_early:
            return
        frozen = self.path.backwards and all(
            parameter.requires_grad is False and parameter.frozen_at is not None for parameter in parameters
        )
        instead = self.replaced.trained_instead(optimizer) if not frozen else None
        if instead is not None and optimizer.site is not None:
            place = self.path.outermost(instead, optimizer.site)
            self.claims.explained.update(leaf for run in self.path.backwards for leaf in run.leaves)
            self.replaced.parameters_not_held(
                optimizer, place, step.site, self.replaced.name_bound_at(place), False
            )
            return
        is_unknown = any((one.attributes or {}).get("<stand in>") for one in parameters)
        if self.path.backwards and is_unknown and not frozen:
            # Which parameters the loss of an unknown module reaches is not known.
            return
        if (
            self.claims.events
            or self.may_be_elsewhere(step.site, bool(frozen))
            or picked_parameters(self.path, parameters)
        ):
            return
        if self.path.context != "script" and not self.path.backwards and not parameters & self.ledger.used:
            return
        silent = [site for tick, site in self.path.unanswered if tick <= step.tick]
        if step.site.library and silent and is_without_value(silent[-1].node):
            self.claims.add("nothing-returned", silent[-1], [], function=silent[-1].frame.name)
            return
        self.claims.add(
            "step-without-backward",
            self.named_only("backward") or step.site,
            [
                Step("made", optimizer.site or step.site, "the optimizer is created here"),
                *(Step("cut", place, "frozen here") for place in frozen_places(parameters) if frozen),
            ],
            frozen=bool(frozen),
        )

    def may_be_elsewhere(self, site: Site, frozen: bool) -> bool:
        """Whether code that this path has not gone through may do the backward, or thaw what is frozen."""
        is_script = self.path.context == "script"
        if frozen:
            return not is_script and may_thaw(site)
        if self.path.graph_escaped or self.has_backward_not_taken(site):
            return True
        return not is_script and self.has_backward_in_class(site)

    def named_only(self, method: str) -> Site | None:
        """Where a method is named and not called."""
        return next((site for name, site in self.path.named_methods if name == method), None)

    def has_backward_not_taken(self, site: Site) -> bool:
        """Whether the text around the step holds a backward that this path went past, and that may go with the step."""
        function = site.frame.function
        body = function.node.body if function is not None else site.unit.tree
        statements = list(own_statements(body if isinstance(body, list) else []))
        taken = {action.site.node for action in self.path.log if action.verb == "backward"}
        return any(
            isinstance(statement, ast.Expr)
            and called_attribute(statement.value) == "backward"
            and statement.value not in taken
            and not are_exclusive(statement.value, site.node, statements)
            for statement in statements
        )

    def has_backward_in_class(self, site: Site) -> bool:
        """Whether the class whose method steps has a backward somewhere: its user calls that method before."""
        owner = site.frame.receiver.cls if isinstance(site.frame.receiver, Instance) else None
        return any(
            isinstance(part, ast.Call) and called_attribute(part) == "backward"
            for ancestor in (owner.lineage() if owner is not None else ())
            if isinstance(ancestor, ClassValue) and ancestor.node is not None and not is_of_library(ancestor)
            for part in syntax_parts(ancestor.node)
        )

    def conclude_clearing(
        self, optimizer: Optimizer, steps: list[Action], backwards: list[Action], parameters: set[Tensor]
    ) -> None:
        """Two steps with backwards before each and nothing cleared between them."""
        ticks = [run.tick for run in backwards]
        # Cleared only now and then: a rhythm, which a later round of the loop shows.
        until = self.end_of_clearing(steps)
        for first, second in pairs_of_one_place(steps):
            runs = backwards[bisect_right(ticks, first.tick) : bisect_left(ticks, second.tick)]
            earlier = bisect_left(ticks, first.tick)
            before = backwards[earlier - 1 : earlier] if earlier else []
            if not runs or not before or not first.loops:
                continue
            if is_cleared(self.path, self.ledger, optimizer, parameters, before[-1].tick, second.tick):
                continue
            end = min(until, self.end_of_loop(first, second))
            if is_cleared(self.path, self.ledger, optimizer, parameters, before[-1].tick, end):
                continue
            if self.path.may_clear_between(parameters, before[-1].tick, second.tick):
                continue
            is_over = end < self.path.tick
            if not is_over and not any(isinstance(parameter.grad, Tensor) for parameter in parameters):
                continue
            steps_on = [Step("needed", second.site, "this step uses the sum of all gradients so far")]
            self.claims.add(
                "gradients-never-cleared", self.named_only("zero_grad") or runs[-1].site, steps_on
            )
            return

    def end_of_clearing(self, steps: list[Action]) -> int:
        """Until when a clearing may belong to a loop that steps: what comes after the loops of the last step does not."""
        loops = {id(run) for run, _ in steps[-1].loops}
        later = [action for action in self.path.log if action.verb == "zero" and action.tick > steps[-1].tick]
        if not later or any(id(run) in loops for action in later for run, _ in action.loops):
            return self.path.tick
        return steps[-1].tick

    def end_of_loop(self, first: Action, second: Action) -> int:
        """When the loop is over that both steps are rounds of: what is cleared after it is no rhythm of it."""
        inner = {id(run) for run, _ in first.loops[-1:]} & {id(run) for run, _ in second.loops}
        inside = [one.tick for one in self.path.log if any(id(run) in inner for run, _ in one.loops)]
        return max(inside, default=self.path.tick)

    def conclude_order(self) -> None:
        """An optimizer is cleared and stepped, and only then the loss is differentiated."""
        verbs = ("zero", "step", "backward", "differentiate")
        log = [action for action in self.path.log if action.verb in verbs]
        for cleared, step, run in zip(log, log[1:], log[2:]):
            if (cleared.verb, step.verb) != ("zero", "step") or run.verb not in verbs[2:]:
                continue
            optimizer = step.subject
            if cleared.subject is not optimizer or optimizer.escaped or run.site.frame is not step.site.frame:
                continue
            if run.verb == "backward" and not self.is_for_next_call(optimizer, cleared, step, run):
                continue
            self.claims.add(
                "step-without-backward",
                step.site,
                [
                    Step("written", cleared.site, "the gradients are cleared here"),
                    Step("made", run.site, "and are computed only here"),
                ],
                frozen=False,
            )

    def is_for_next_call(self, optimizer: Optimizer, cleared: Action, step: Action, run: Action) -> bool:
        """Whether what a backward computes outside of any loop waits for the step of another call, which clears it first."""
        parameters = self.path.ever_held_by(optimizer)
        ticks = [
            action.tick for action in self.path.log if action.verb == "step" and action.subject is optimizer
        ]
        return (
            not run.loops
            and not self.path.gradients_unknown
            and not self.path.ended_early
            and ticks == [step.tick]
            and bool(parameters & set(run.leaves))
            and cleared.site.frame is step.site.frame
            and not cleared.site.guards
            and not self.path.escaped_between(parameters, cleared.tick, step.tick)
        )

    def conclude_updates(self) -> None:
        """Leaves that are updated by hand, round after round, by gradients that nobody clears."""
        held = {tensor for optimizer in self.path.optimizers for tensor in self.path.ever_held_by(optimizer)}
        for (leaf, site, tick), (other, again, later) in pairs_of_one_leaf(self.ledger.updates):
            if leaf is not other or leaf in held or site.key != again.key or not site.loops:
                continue
            runs = [
                a
                for a in self.path.log
                if a.verb == "backward" and tick < a.tick < later and leaf in a.leaves
            ]
            if (
                not runs
                or self.ledger.was_cleared(leaf, tick, later)
                or self.path.escaped_between({leaf}, tick, later)
            ):
                continue
            self.claims.add(
                "gradients-never-cleared",
                runs[-1].site,
                [
                    Step("needed", again, "this update uses the sum of all gradients so far"),
                ],
            )

    def conclude_foreign(self, optimizer: Optimizer, steps: list[Action], backwards: list[Action]) -> None:
        """Gradients that another optimizer's loss left behind are still there at this step."""
        others = [other for other in self.path.optimizers if other is not optimizer]
        ticks = [run.tick for run in backwards]
        own = [step.tick for step in steps]
        foreign = [a.tick for a in self.path.log if a.verb == "step" and a.subject in others]
        # One that was not seen being made learns what it holds only later.
        cleared_by_itself = [a.tick for a in self.path.log if a.verb == "zero" and a.subject is optimizer]
        for step in steps:
            until = bisect_left(ticks, step.tick)
            for parameter in self.path.parameters_of(optimizer):
                if self.is_shared_out(parameter, others):
                    continue
                clears = self.ledger.all_clears.get(parameter, [])
                last_clear = bisect_left(clears, step.tick) - 1
                cleared = clears[last_clear] if last_clear >= 0 else -1
                since = bisect_right(ticks, cleared)
                first = next((k for k in range(since, until) if parameter in backwards[k].leaves), until)
                last = next(
                    (k for k in range(until - 1, first, -1) if parameter in backwards[k].leaves), first
                )
                if first == last:
                    continue
                runs = (backwards[first], backwards[last])
                between = (runs[0].tick, runs[-1].tick)
                if runs[0].site.key == runs[-1].site.key and not self.goes_through_optimizers(
                    step, others, between
                ):
                    continue
                if is_one_within(cleared_by_itself, runs[0].tick, step.tick):
                    continue
                if is_one_within(own, *between):
                    continue
                if is_one_within(foreign, *between):
                    self.claim_foreign(parameter, *runs, step)
                    return
                if self.is_for_another(optimizer, *runs, others):
                    self.claim_foreign(parameter, runs[-1], runs[0], step)
                    return

    def claim_foreign(self, parameter: Tensor, foreign: Action, own: Action, step: Action) -> None:
        self.claims.add(
            "foreign-gradients",
            foreign.site,
            [
                Step("written", own.site, "its own loss fills them here"),
                Step("needed", step.site, "this step applies both"),
            ],
            parameter=parameter.label,
        )

    def is_for_another(
        self, optimizer: Optimizer, first: Action, last: Action, others: list[Optimizer]
    ) -> bool:
        """Whether the later of two backwards before one step is that of another optimizer, which alone is cleared for it.

        `q_loss.backward(); policy_optimizer.zero_grad(); (-q(policy(s)).mean()).backward(); q_optimizer.step()`: the loss of
        the policy goes through all of `q` that the first backward filled, and the first reaches nothing of the policy.
        """
        mine = set(self.path.parameters_of(optimizer))
        filled, added = set(first.leaves), set(last.leaves)
        for other in others:
            theirs = set(self.path.parameters_of(other)) - mine
            zeros = [a.tick for a in self.path.log if a.verb == "zero" and a.subject is other]
            if (
                theirs & added
                and not theirs & filled
                and mine & filled <= added
                and is_one_within(zeros, first.tick, last.tick)
                and any(a.verb == "step" and a.subject is other and a.tick > last.tick for a in self.path.log)
            ):
                return True
        return False

    def goes_through_optimizers(
        self, step: Action, others: list[Optimizer], between: tuple[int, int]
    ) -> bool:
        """Whether one line steps several optimizers in turn, each with a loss of its own: `for opt in optimizers: …`."""
        return any(
            action.verb == "step"
            and action.subject in others
            and action.site.key == step.site.key
            and between[0] < action.tick < between[1]
            for action in self.path.log
        )

    def is_shared_out(self, parameter: Tensor, others: list[Optimizer]) -> bool:
        """Whether one parameter stands for all of a module that is not known, and several optimizers have their shares of it."""
        return bool((parameter.attributes or {}).get("<stand in>")) and any(
            parameter in self.path.parameters_of(other) for other in others
        )

    def on_stepping(self, fact: Stepping) -> None:
        self.check_order(fact.optimizer, fact.site)
        self.check_closure(fact.optimizer, fact.site)
        self.check_eval(fact.optimizer, fact.site)

    def on_stepped(self, fact: Stepped) -> None:
        for parameter in self.path.parameters_of(fact.optimizer):
            record = self.ledger.records.get(parameter)
            if record is not None:
                record.pending = False

    def check_order(self, optimizer: Optimizer, site: Site) -> None:
        """All gradients that were computed since the last step are gone: zeroed or dropped.

        Of a list whose members are not all known (a block for each of `args.depth`) those that are stand for the others.
        """
        if self.path.gradients_unknown or optimizer.escaped or optimizer.is_guessed():
            return
        records = [
            self.ledger.records[p] for p in self.path.parameters_of(optimizer) if p in self.ledger.records
        ]
        pending = [record for record in records if record.pending]
        if pending and all(record.state in ("zeroed", "dropped") for record in pending):
            if not self.is_cut_off_since(optimizer):
                self.ledger.cleared_too_early(pending[-1], site)

    def is_cut_off_since(self, optimizer: Optimizer) -> bool:
        """Whether a backward after the clear stopped at a cut before these parameters: the cut is the fault, not the clear."""
        for parameter in self.path.parameters_of(optimizer):
            cleared = self.path.cleared_ticks.get(parameter, -1)
            for run in self.path.backwards:
                if run.tick > cleared and any(parameter in leaves_of(cut.edges) for cut in run.cuts):
                    return True
        return False

    def check_closure(self, optimizer: Optimizer, site: Site) -> None:
        """LBFGS calls its closure several times in one step: each call must clear what the last one left."""
        before, self.last_stepping = self.last_stepping, (optimizer, site, self.path.tick)
        if before is None or before[0] is not optimizer or before[1] is not site:
            return
        since = takewhile(lambda action: action.tick > before[2], reversed(self.path.log))
        for run in [action for action in since if action.verb == "backward"][::-1]:
            parameters = set(self.path.parameters_of(optimizer)) & set(run.leaves)
            if parameters and not any(
                self.ledger.was_cleared(parameter, before[2], self.path.tick) for parameter in parameters
            ):
                steps = [Step("needed", site, "this step calls the closure several times")]
                self.claims.add("gradients-never-cleared", run.site, steps, in_closure=True)

    def on_attribute_set(self, fact: AttributeSet) -> None:
        if fact.name == "training" and fact.value is not False:
            self.set_by_hand = self.path.tick

    def mode_switches(self) -> list[Action]:
        """The calls of `train` and `eval` so far; each action of the path is read once."""
        log = self.path.log
        if self.read > len(log) or (self.read and log[self.read - 1] is not self.last_read):
            self.read, self.switches = 0, []
        if self.read < len(log):
            self.switches += [action for action in log[self.read :] if action.verb in ("eval", "train")]
            self.read, self.last_read = len(log), log[-1]
        return list(self.switches)

    def check_eval(self, optimizer: Optimizer, site: Site) -> None:
        """A step while the model is in eval mode, after it had been trained in train mode before."""
        parameters = set(self.path.parameters_of(optimizer))
        switches = self.mode_switches()
        while switches:
            action = switches.pop()
            owned = {tensor for _, tensor in self.path.tensors_of(action.subject, "parameter")} & parameters
            if not owned:
                continue
            if action.verb == "train" or self.set_by_hand >= action.tick:
                return
            if is_switched_in_forward(action):
                continue
            # Steps and switches may share a tick, where no operator came between them: the log has their order.
            places = {id(one): place for place, one in enumerate(self.path.log)}
            stepped = [places[id(a)] for a in self.path.log if a.verb == "step" and a.subject is optimizer]
            place = places[id(action)]
            whole = self.last_switch(switches, owned) if owned != parameters else None
            if whole is not None and (
                whole.verb == "train" or not any(places[id(whole)] < one < place for one in stepped)
            ):
                # A part of a model that was switched as a whole: kept in eval mode on purpose, as frozen batch norms are.
                continue
            if not any(self.path.live_gradient_ticks.get(tensor, -1) > action.tick for tensor in owned):
                # A part that is used as it is, and learns nothing.
                continue
            earlier = any(one < place for one in stepped)
            # Who switches an unknown model says that its mode counts; what it was trained in before was the other one.
            is_switched = "stand in" in getattr(action.subject, "options", ()) and (
                self.was_trained_before(action, switches, stepped, places)
                or any(one.verb == "train" and one.subject is action.subject for one in switches)
            )
            sensitive = is_switched or any(
                knows_mode(inner) and not self.is_frozen(inner)
                for _, inner in self.path.modules_in(action.subject)
            )
            inferred = self.path.last_inference > action.tick
            if (earlier or inferred) and sensitive:
                self.claims.add(
                    "eval-left-on",
                    action.site,
                    [Step("needed", site, "training continues here, in eval mode")],
                    target=self.path.text_of_target(action.site),
                )
            return

    def was_trained_before(
        self, action: Action, switches: list[Action], stepped: list[int], places: dict[int, int]
    ) -> bool:
        """Whether steps were taken before the first `eval()`: who calls it at the top of each epoch may mean it."""
        first, begun = places[id(action)], -1
        for one in reversed(switches):
            if one.subject is action.subject:
                if one.verb == "train":
                    begun = places[id(one)]
                    break
                first = places[id(one)]
        return any(begun < one < first for one in stepped)

    def is_frozen(self, module: Any) -> bool:
        """Whether a module has parameters of which none learns: in eval mode it stays all as it is."""
        parameters = [tensor for _, tensor in self.path.tensors_of(module, "parameter")]
        return bool(parameters) and all(tensor.requires_grad is False for tensor in parameters)

    def last_switch(self, switches: list[Action], parameters: set[Tensor]) -> Action | None:
        """The last switch of a module that holds all of these parameters."""
        for action in reversed(switches):
            if parameters <= {tensor for _, tensor in self.path.tensors_of(action.subject, "parameter")}:
                return action
        return None


def pairs_of_one_place(steps: list[Action]) -> list[tuple[Action, Action]]:
    """Each step with the next one at the same place: in between the optimizer may step for other losses."""
    by_place: dict[Any, list[Action]] = {}
    for step in steps:
        by_place.setdefault(step.site.key, []).append(step)
    return [pair for places in by_place.values() for pair in pairwise(places)]


def is_one_within(ticks: list[int], start: int, end: int) -> bool:
    """Whether one of these, which follow each other in time, lies between two others."""
    at = bisect_right(ticks, start)
    return at < len(ticks) and ticks[at] < end


def are_exclusive(one: ast.AST, other: ast.AST, statements: list[ast.stmt]) -> bool:
    """Whether two places stand in the two arms of one of these conditions: nobody comes by both of them at once."""
    return any(
        (one in taken and other in passed) or (other in taken and one in passed)
        for taken, passed in (
            (
                [part for each in node.body for part in syntax_parts(each)],
                [part for each in node.orelse for part in syntax_parts(each)],
            )
            for node in statements
            if isinstance(node, ast.If) and node.orelse
        )
    )


def knows_mode(module: Any) -> bool:
    """Whether a module does another thing in eval mode: a layer that does, or a class that reads `self.training`."""
    if isinstance(module, Layer):
        return "Dropout" in module.name or "BatchNorm" in module.name
    return isinstance(module, Instance) and any(
        "training" in deeds_of(one.node).attributes.get("self", ())
        for one in module.cls.lineage()
        if isinstance(one, ClassValue) and one.node is not None and not (one.unit and one.unit.library)
    )


def pairs_of_one_leaf(updates: list[Any]) -> list[tuple[Any, Any]]:
    """Consecutive updates of the same leaf by the same statement."""
    last: dict[tuple[Tensor, Any], Any] = {}
    pairs = []
    for update in updates:
        key = (update[0], update[1].key)
        if key in last:
            pairs.append((last[key], update))
        last[key] = update
    return pairs


def is_switched_in_forward(action: Action) -> bool:
    """Whether a forward puts a part of its module into eval mode, whenever it is called: it is meant to be."""
    frame = action.site.frame
    is_forward = frame.function is not None and frame.function.name == "forward"
    return is_forward and isinstance(frame.receiver, Instance) and frame.receiver is not action.subject


def is_without_value(function: ast.AST) -> bool:
    """Whether no statement of a function returns anything."""
    body = getattr(function, "body", [])
    return isinstance(body, list) and not any(
        isinstance(statement, ast.Return) and statement.value is not None
        for statement in own_statements(body)
    )
