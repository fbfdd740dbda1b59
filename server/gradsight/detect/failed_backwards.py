"""Backwards that fail: a saved tensor overwritten, a graph freed, no graph at all, more than one element."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.frozen_parameters import frozen_places
from gradsight.detect.gradient_flow import COMPARING
from gradsight.detect.mode_cuts import steps_of_mode
from gradsight.detect.moved_again import is_made_of_itself
from gradsight.detect.path import Path
from gradsight.detect.seclusion import starts_from_nothing
from gradsight.detect.wording import code_at, how_called, operator_of
from gradsight.interp.path_state import assumption_of
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.name_hints import suggests
from gradsight.model.sites import Site
from gradsight.model.tensors import Cut, Edge, Maybe, Node, Tensor, leaves_of
from gradsight.model.trace import (
    Applied,
    FreedNeeded,
    GraphFound,
    InferenceSaved,
    NoGraph,
    NotScalar,
    SavedChanged,
    SavedOverwritten,
    Stepping,
    Walked,
)

NOTHING: set[Tensor] = set()


class FailedBackwards:
    """Tells what a backward met, with the trail that leads there."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.ambiguous: list[tuple[NoGraph, dict[Optimizer, list[Site]]]] = []
        """Backwards without a graph, where a cut and an optimizer of frozen parameters may both be the cause: the next step tells."""

        self.of_targets: set[Cut] = set()
        """Cuts on the way to the target of a loss, and not to its prediction: a target is meant to be constant."""

    def on_applied(self, fact: Applied) -> None:
        if fact.name in COMPARING and len(fact.arguments) > 1:
            prediction, target = fact.arguments[:2]
            if isinstance(target, Tensor) and isinstance(prediction, Tensor) and prediction.cuts:
                self.of_targets |= target.cuts - prediction.cuts

    def on_graph_found(self, fact: GraphFound) -> None:
        if not (fact.is_guess and self.frozen_in_optimizers()):
            self.claims.granted.add(("backward-without-graph", fact.site.key))

    # -- saved tensors -----------------------------------------------------------------------------------------------

    def on_saved_overwritten(self, fact: SavedOverwritten) -> None:
        node, saved, writes, site, how, premise = (
            fact.node,
            fact.saved,
            fact.writes,
            fact.site,
            fact.how,
            fact.assumption,
        )
        write = writes[0]
        by_step = write.mode == "optimizer"
        kept = "result" if saved.role.startswith("result") else "input"
        name = saved.label or saved.tensor.label or self.path.text_of_target(write.site)
        written = self.path.text_of_target(write.site)
        if kept == "result" and write.site.call is not None and not (saved.label or saved.tensor.label):
            # A layer wrote what the layer before it in a sequence made: no name was ever given to it.
            name = written = f"the result of {node.op}"
        steps = [
            Step("saved", node.site, saved_here(node, kept)),
            *(Step("written", other.site, f"`{code_at(other.site) or other.op}` overwrites it again here") for other in writes[1:3] if other.site.key != write.site.key),
        ]  # fmt: skip
        if how != "assumed":
            steps.append(Step("needed", site, f"this `{how_called(how)}` needs the old value"))
        steps += list(self.path.call_steps(write.site))
        self.claims.add(
            "saved-overwritten",
            write.site,
            steps,
            premise,
            op=node.op,
            saver=operator_of(node),
            write=write.op,
            target=name,
            what=kept,
            by_step=by_step,
            mode=write.mode,
            how=how,
            written=written,
            is_parameter=saved.tensor.is_parameter
            or (saved.tensor.is_leaf and saved.tensor.requires_grad is True),
            key=None,
        )

    def on_saved_changed(self, fact: SavedChanged) -> None:
        node, saved, writes, site, how, premise = (
            fact.node,
            fact.saved,
            fact.writes,
            fact.site,
            fact.how,
            fact.assumption,
        )
        write = writes[0]
        if how == "again" and is_made_of_itself(write.site):
            return
        name = saved.label or saved.tensor.label
        kept = "result" if saved.role.startswith("result") else "input"
        steps = [Step("saved", node.site, saved_here(node, kept))]
        if how == "again":
            steps.append(Step("needed", site, "`backward()` runs this function again"))
        elif how != "assumed":
            steps.append(Step("needed", site, f"this `{how_called(how)}` uses the changed value"))
        steps += list(self.path.call_steps(write.site))
        self.claims.add(
            "saved-changed-silently",
            write.site,
            steps,
            premise,
            op=node.op,
            saver=operator_of(node),
            write=write.op,
            target=name,
            written=self.path.text_of_target(write.site),
            by_step=write.mode == "silent" and "step" in write.op,
            by_statistics="running_" in saved.role,
            is_run_again=how == "again",
            is_parameter=saved.tensor.is_parameter
            or (saved.tensor.is_leaf and saved.tensor.requires_grad is True),
        )

    def on_inference_saved(self, fact: InferenceSaved) -> None:
        tensor, node = fact.tensor, fact.node
        if tensor.inference_site is not None:
            steps = [Step("saved", node.site, f"`{operator_of(node)}` must save it for `backward()` here")]
            self.claims.add(
                "backward-without-graph",
                tensor.inference_site,
                steps,
                cut="inference",
                op=node.op,
                loss="",
                source=tensor.label,
                refused="save",
            )

    # -- freed graphs ------------------------------------------------------------------------------------------------

    def on_freed_needed(self, fact: FreedNeeded) -> None:
        node, loss, site, how = fact.node, fact.loss, fact.site, fact.how
        first = node.freed
        if first is None or self.is_of_several_losses(node, loss):
            return
        steps = [
            Step("needed", first, "this `backward()` frees the graph"),
            Step("saved", node.site, f"both backward passes go through `{operator_of(node)}`"),
        ]
        if first.key == site.key and self.path.from_earlier_round(node, site):
            if node.tick <= self.path.objects_passed_at:
                # `for m in net.modules(): m.reset()`, of which the first rounds were executed: the others are reset, too.
                return
            place = self.carry_site(loss, site) or site
            if place.key != site.key:
                steps.append(Step("needed", site, "this `backward()` needs it again in the next step"))
            self.claims.add(
                "state-carried",
                place,
                steps,
                fact.assumption,
                op=node.op,
                unsure=place.key in self.path.stored_somewhere,
                loss=self.path.text_of_target(site),
            )
            return
        self.claims.add(
            "backward-twice",
            site,
            steps,
            fact.assumption,
            op=node.op,
            loss=self.path.text_of_target(site),
            how=how,
            again=first.key == site.key,
        )

    def is_of_several_losses(self, node: Node, loss: Tensor) -> bool:
        """Whether unknown code returned this loss beside the one that went backward before: each may have a graph of its own.

        `content, style = net.losses(x)`, then `content.backward()` and `style.backward()`.
        """
        made = loss.node
        return (
            made is not None
            and (made.holds == "sometimes" or (made.holds == "layers" and made is node))
            and any(run.loss.node is made and run.loss is not loss for run in self.path.backwards)
        )

    def on_walked(self, fact: Walked) -> None:
        if fact.again is not None:
            steps = [Step("saved", fact.again.site, "recorded here in an earlier step")]
            self.claims.add("graph-grows", fact.site, steps)

    def carry_site(self, loss: Tensor, site: Site) -> Site | None:
        """Where the value that brings the old graph into this round was kept."""
        start = loss.edge()
        todo: list[Edge] = [start] if start is not None else []
        seen: set[Node] = set()
        carried: Tensor | None = None
        cached: Tensor | None = None
        old: Node | None = None
        while todo:
            edge = todo.pop()
            if not isinstance(edge, Node) or edge in seen or edge.freed is not None:
                continue
            seen.add(edge)
            for tensor in edge.operands:
                inner = tensor.node
                cached = self.cached_below(tensor, site) or cached
                if inner is None or not self.path.from_earlier_round(inner, site):
                    continue
                if inner.freed is not None or (
                    not self.path.from_earlier_round(edge, site)
                    and leads_to_freed(inner)
                    and self.is_freed_in_its_round(inner)
                ):
                    if old is None or inner.tick > old.tick:
                        carried, old = tensor, inner
            for inner_edge in edge.inputs:
                if isinstance(inner_edge, Node) and inner_edge.freed is not None and old is None:
                    old = inner_edge
                todo.append(inner_edge)
        if old is None:
            return None
        carried = carried if carried is not None else cached
        if carried is not None and carried.kept_at is not None:
            return carried.kept_at
        if old.op.endswith("_") or old.op == "CopySlices":
            return old.site
        return self.path.outermost(old.site, site)

    def cached_below(self, tensor: Tensor, site: Site) -> Tensor | None:
        """The value of an earlier round that a view of this one shows, where it was kept: `self.cache[:length]`."""
        base = tensor.base
        if base is None or base.kept_at is None or base.node is None:
            return None
        return base if self.path.from_earlier_round(base.node, site) and leads_to_freed(base.node) else None

    def is_freed_in_its_round(self, node: Node) -> bool:
        """Whether a freed part that a node leads to was recorded in the same round: it is what is carried on."""
        return leads_to_freed(node, lambda edge: not self.path.from_earlier_round(edge, node.site))

    # -- no graph ----------------------------------------------------------------------------------------------------

    def on_not_scalar(self, fact: NotScalar) -> None:
        loss = fact.loss
        self.claims.add(
            "non-scalar-backward",
            fact.site,
            [Step("made", loss.site, "computed here, with more than one element")],
            fact.assumption or assumption_of(loss.needs_grad()),
            target=self.path.text_of_target(fact.site),
            how=fact.how,
            argument=fact.argument,
            shape="" if fact.assumption else str(list(loss.shape or ())),
        )

    def on_no_graph(self, fact: NoGraph) -> None:
        frozen = {one: places for one in self.path.optimizers if (places := self.frozen_in([one]))}
        if frozen and len(self.path.optimizers) > 1 and any(cut.edges for cut in fact.cuts):
            self.ambiguous.append((fact, frozen))
        else:
            self.no_graph(fact, self.frozen_in_optimizers())

    def on_stepping(self, fact: Stepping) -> None:
        """A backward serves the step behind it: what that one moves has lost its gradients, by being frozen or by the cut."""
        for failed, frozen in self.ambiguous:
            self.no_graph(failed, frozen.get(fact.optimizer, []))
        self.ambiguous.clear()

    def finish(self) -> None:
        for failed, frozen in self.ambiguous:
            cleared = self.cleared_last()
            self.no_graph(failed, [place for one in cleared for place in frozen.get(one, [])])

    def no_graph(self, fact: NoGraph, frozen: list[Site]) -> None:
        """The cause is the cut, if there is one and nothing that was to be trained is frozen."""
        loss, site, cuts, how = fact.loss, fact.site, fact.cuts, fact.how
        text = self.path.text_of_target(site)
        causes = [cut for cut in cuts if any(True for _ in cut.edges)]
        certain = [cut for cut in causes if not isinstance(cut.source.requires_grad, Maybe)]
        if not certain and how == "backward" and loss.requires_grad is False:
            # Whatever was cut off: torch finds no graph behind the cut.
            certain = [cut for cut in causes if cut.kind == "detach"]
        if frozen:
            # What is cut off beside it, a teacher say, is no cause.
            causes = certain = []
        if certain:
            cut = self.likeliest(certain)
            place = self.place_of_cut(cut, site)
            steps = [
                Step("made", cut.source.site, "still in the graph here"),
                *steps_of_mode(cut),
                Step("needed", site, f"this `{how_called(how)}` finds no graph"),
                *self.path.call_steps(cut.site),
            ]
            self.claims.add(
                "backward-without-graph",
                place,
                steps,
                cut=self.word_for(cut),
                op=cut.op,
                loss=text,
                source=cut.source.label,
                key=None,
            )
        elif not causes and loss.requires_grad is False and loss.leaf_made and loss.node is None:
            if self.if_untouched() and is_start_of_sum(loss):
                # Nothing was added to it, as nothing is known of what its loop goes through.
                return
            self.claims.add(
                "backward-without-graph",
                site,
                [Step("made", loss.site, "created here, without `requires_grad`")],
                self.if_untouched(),
                cut="leaf",
                op="",
                loss=text,
                source=loss.label,
            )
        elif not causes and loss.requires_grad is False:
            if not frozen and (loss.dtype == "?" or self.path.left_after_one):
                # Made of data that is not known, or of a state into which a further round of a loop would bring the graph.
                return
            self.claims.add(
                "backward-without-graph",
                site,
                [
                    Step("made", loss.site, "computed here, from tensors that do not require grad"),
                    *(Step("cut", place, "frozen here") for place in frozen),
                ],
                self.if_untouched(),
                cut="none",
                op="",
                loss=text,
                source=loss.label,
            )

    def likeliest(self, cuts: list[Cut]) -> Cut:
        """Which of several cuts is the mistake: the last one, unless another keeps more of the same training from the loss.

        A target network, a frozen teacher and averaged weights are cut off on purpose.
        """
        cuts = [cut for cut in cuts if cut not in self.of_targets] or cuts
        trained = self.trained()
        lost: dict[Any, set[Tensor]] = {}
        for cut in cuts:
            if cut.source.node is not None or cut.kind not in ("data", "detach"):
                lost.setdefault(cut.site.key, set()).update(leaves_of(cut.edges) & trained)
        most = [
            cut for cut in cuts if not any(lost.get(cut.site.key, NOTHING) < other for other in lost.values())
        ]
        return max(most or cuts, key=lambda cut: (cut.tick, cut.serial))

    def trained(self) -> set[Tensor]:
        return {tensor for optimizer in self.path.optimizers for tensor in self.path.parameters_of(optimizer)}

    def if_untouched(self) -> str:
        """Code that is run by itself starts from a state that other code may have changed."""
        return "" if starts_from_nothing(self.path) else "nothing else sets what it is made of"

    def word_for(self, cut: Cut) -> str:
        """`left-off` for grad mode that a call of set_grad_enabled switched off for good; else the kind of the cut."""
        node = cut.site.node
        if (
            cut.kind == "no_grad"
            and isinstance(node, ast.Call)
            and "set_grad_enabled" in ast.unparse(node.func)
        ):
            return "left-off"
        return cut.kind

    def place_of_cut(self, cut: Cut, site: Site) -> Site:
        """Where to repair a cut: a helper that is meant to run with grad mode off is right, calling it for a loss is not."""
        function = cut.site.frame.function
        owner = getattr(function, "name", "")
        if (
            self.word_for(cut) in ("no_grad", "inference")
            and suggests("run without gradients", owner)
            and cut.site.frame is not site.frame
        ):
            for caller in cut.site.callers():
                if caller.frame is site.frame:
                    return caller
        return cut.site

    def frozen_in_optimizers(self) -> list[Site]:
        """Where all that an optimizer holds was frozen: the one that was cleared last, or any if none was."""
        return self.frozen_in(self.cleared_last())

    def cleared_last(self) -> list[Optimizer]:
        cleared = [
            action.subject
            for action in self.path.log
            if action.verb == "zero" and action.subject in self.path.optimizers
        ]
        return cleared[-1:] or self.path.optimizers

    def frozen_in(self, optimizers: list[Optimizer]) -> list[Site]:
        held = [set(self.path.parameters_of(one)) for one in optimizers]
        return frozen_places(
            {
                one
                for parameters in held
                if all(each.requires_grad is False and each.frozen_at is not None for each in parameters)
                for one in parameters
            }
        )


def saved_here(node: Node, kept: str) -> str:
    """What an operator saves: its output, or an input."""
    return f"`{operator_of(node)}` saves {'its output' if kept == 'result' else 'an input'} here"


def leads_to_freed(start: Node, is_passed: Callable[[Node], bool] = lambda node: True) -> bool:
    """Whether a backward from here, through nodes that are passed, comes upon one that was freed."""
    todo: list[Edge] = [start]
    seen: set[Edge] = set()
    while todo:
        edge = todo.pop()
        if not isinstance(edge, Node) or edge in seen or not is_passed(edge):
            continue
        if edge.freed is not None:
            return True
        seen.add(edge)
        todo.extend(edge.inputs)
    return False


def is_start_of_sum(loss: Tensor) -> bool:
    """Whether the function that made a constant adds to it in a loop: `total = torch.tensor(0.0)`, `for …: total += …`."""
    function = loss.site.frame.function
    if function is None or not loss.label:
        return False
    loops = (part for part in ast.walk(function.node) if isinstance(part, (ast.For, ast.AsyncFor, ast.While)))
    return any(
        isinstance(part, ast.AugAssign) and ast.unparse(part.target) == loss.label
        for loop in loops
        for part in ast.walk(loop)
    )
