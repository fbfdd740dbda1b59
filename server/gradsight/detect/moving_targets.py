"""Targets that are not constant: a loss whose target, or whose weight, is computed by what the loss trains.

*Bootstrapped*: data plus a scaled prediction, `reward + gamma * q(next_state)`.  What stands where a loss takes its target
and is made like this is one, whatever it is called.

*Evaluated*: what a module in eval mode gives, where the other side is from one in train mode.  It is a teacher, and a target
that moves if an optimizer steps it.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_flow import COMPARING, nodes_behind
from gradsight.detect.path import Path
from gradsight.interp.syntax import statement_around
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.name_hints import suggests
from gradsight.model.sites import Site
from gradsight.model.tensors import Node, Tensor, leaves_of, nodes_and_leaves
from gradsight.model.trace import Applied, Backward, Combined, Stepped
from gradsight.model.values import Unknown


class MovingTarget:
    """A target that a backward went into; `stepped` is a step that then moves what computes it."""

    __slots__ = ("backward", "is_evaluated", "leaves", "optimizer", "site", "stepped", "target")

    def __init__(
        self, site: Site, target: Tensor, backward: Site, leaves: set[Tensor], is_evaluated: bool
    ) -> None:
        self.is_evaluated = is_evaluated
        self.site = site
        self.target = target
        self.backward = backward
        self.leaves = leaves
        self.stepped: Site | None = None
        self.optimizer: Optimizer | None = None


class MovingTargets:
    """Remembers where a target meets a prediction, and speaks when a backward goes through both."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.meetings: list[tuple[Node, Site, Tensor]] = []
        self.found: dict[Any, MovingTarget] = {}
        self.sums_with_data: set[Node] = set()
        self.looked_at = 0
        self.switches: list[Any] = []
        """Modules that were put into eval mode, and back, as far as the log was looked at."""
        self.evaluated: set[Tensor] = set()
        """What modules in eval mode gave as the target of a loss."""

    def on_applied(self, fact: Applied) -> None:
        if fact.name in COMPARING:
            self.compared(fact.arguments, fact.result, fact.node)

    def on_combined(self, fact: Combined) -> None:
        name, left, right, result, node = fact.operator, fact.left, fact.right, fact.result, fact.node
        if name in SUMS and isinstance(result, Tensor) and result.node is not None:
            if is_data(left) or is_data(right):
                self.sums_with_data.add(result.node)
        if name in ("__sub__", "__rsub__"):
            self.compared([left, right], result, node)
        elif name in ("__mul__", "__rmul__"):
            for chance, weight in ((left, right), (right, left)):
                if (
                    isinstance(weight, Tensor)
                    and is_log_probability(chance)
                    and suggests("weight of a loss", weight.label)
                ):
                    if weight.needs_grad() is True and weight.node is not None:
                        self.remember_meeting(result, weight, node)

    def compared(self, values: list[Any], result: Any, node: ast.AST) -> None:
        tensors = [value for value in values if isinstance(value, Tensor) and value.needs_grad() is True]
        if len(tensors) < 2:
            return
        named = [tensor for tensor in tensors[:2] if suggests("target", tensor.label)]
        if len(named) == 2:
            # `F.mse_loss(q_expected, q_targets)`: what they are made of tells which of them is the target.
            named = [tensor for tensor in named if self.is_bootstrapped(tensor)]
            if len(named) != 1:
                return
        target = named[0] if named else None
        if target is None:
            target = next((tensor for tensor in reversed(tensors[:2]) if self.is_bootstrapped(tensor)), None)
            if target is not None and any(
                one.node in nodes_behind(target.node) for one in tensors if one is not target
            ):
                # A mean that runs along with the prediction is made of that very prediction.
                target = None
        is_taught = target is None and self.is_evaluated(tensors[1]) and not self.is_evaluated(tensors[0])
        if is_taught and depends_on_data(tensors[0]):
            self.evaluated.add(tensors[1])
            self.remember_meeting(result, tensors[1], node)
            return
        if target is None or target.node is None or self.is_updated(target, node):
            return
        other = tensors[1] if target is tensors[0] else tensors[0]
        if other.node is None or target.node in nodes_and_leaves((other.node,)):
            # `x - x.logsumexp(1)`: what the other side is made of is no target of it.
            return
        shared = leaves_of([target.node]) & leaves_of([other.node])
        if any(leaf.is_parameter or leaf.leaf_made for leaf in shared):
            self.remember_meeting(result, target, node)

    def is_evaluated(self, tensor: Tensor) -> bool:
        """Whether all that computed a value belongs to modules that were put into eval mode, and not back."""
        for action in self.path.log[self.looked_at :]:
            if action.verb == "eval" or (action.verb == "train" and self.switches):
                self.switches.append(action)
        self.looked_at = len(self.path.log)
        if not self.switches or tensor.node is None:
            return False
        parameters = {leaf for leaf in leaves_of([tensor.node]) if leaf.is_parameter}
        if not parameters:
            return False
        resting: set[Tensor] = set()
        for action in self.switches:
            own = {one for _, one in self.path.tensors_of(action.subject, "parameter")}
            resting = resting | own if action.verb == "eval" else resting - own
        return parameters <= resting

    def is_updated(self, target: Tensor, node: ast.AST) -> bool:
        """Whether the difference goes into the value that it was taken from, `v = v + (x - v) / tau`: a state, and no target."""
        statement = statement_around(node, self.path.frame)
        places = (
            statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        )
        return any(place is not None and ast.unparse(place) == target.label for place in places)

    def is_bootstrapped(self, tensor: Tensor) -> bool:
        """Whether a value is the sum of data and of a prediction that is scaled by a number or by data."""
        edge: Any = tensor.node
        has_data = False
        for _ in range(8):
            if not isinstance(edge, Node):
                return False
            live = [operand for operand in edge.operands if operand.needs_grad() is True]
            if len(live) != 1:
                return False
            if edge in self.sums_with_data:
                has_data = True
            elif edge.op in ("mul", "div") and has_data:
                return True
            elif edge.op not in PASSING and edge.op not in ("add", "sub", "rsub"):
                return False
            edge = live[0].node
        return False

    def remember_meeting(self, result: Any, target: Tensor, node: ast.AST) -> None:
        if isinstance(result, Tensor) and result.node is not None:
            self.meetings.append((result.node, self.path.site(node), target))

    def on_backward(self, fact: Backward) -> None:
        run = fact.run
        if not self.meetings:
            return
        reached = nodes_behind(run.loss.edge())
        for node, site, target in self.meetings:
            if node in reached and not any(target is known.target for known in self.found.values()):
                behind = leaves_of([target.node]) if target.node is not None else set()
                self.found[site.key] = MovingTarget(site, target, run.site, behind, target in self.evaluated)
        self.meetings.clear()

    def on_stepped(self, fact: Stepped) -> None:
        moved = set(self.path.parameters_of(fact.optimizer)) if self.found else set()
        for found in self.found.values():
            if found.stepped is None and moved & found.leaves:
                found.stepped, found.optimizer = fact.site, fact.optimizer

    def finish(self) -> None:
        for found in self.found.values():
            if found.is_evaluated and found.stepped is None:
                # Gradients that nobody applies do a teacher no harm.
                continue
            made = (
                "computed here, by a module in eval mode whose parameters a step moves"
                if found.is_evaluated
                else "computed here, by the network that is trained on it"
            )
            steps = [
                Step("made", found.target.site, made),
                *self.steps_of_network(found),
                Step("needed", found.backward, "this `backward()` also flows into it"),
                *self.path.call_steps(found.site),
            ]
            self.claims.add(
                "target-not-constant",
                found.site,
                steps,
                target=found.target.label,
                is_trained=found.stepped is not None,
            )

    def steps_of_network(self, found: MovingTarget) -> list[Step]:
        """Where the network was applied, if that is another line than that of the target, and who trains a teacher."""
        applied = [
            self.path.outermost(node.site, found.site)
            for node in nodes_behind(found.target.node)
            if any(isinstance(edge, Tensor) and edge in found.leaves for edge in node.inputs)
        ]
        steps = []
        places = [site for site in applied if site.frame is found.target.site.frame]
        last = max(places, key=lambda site: site.line, default=None)
        if last is not None and last.line not in (found.target.site.line, found.site.line):
            steps.append(Step("made", last, "the network is applied here, with a graph"))
        if found.is_evaluated and found.optimizer is not None and found.optimizer.site is not None:
            steps.append(Step("made", found.optimizer.site, "this optimizer holds its parameters"))
        return steps


def depends_on_data(prediction: Tensor) -> bool:
    """Whether something was computed from data: a parameter alone, `radius ** 2`, is no prediction."""
    return any(
        node.holds == "layers" or any(one.needs_grad() is not True for one in node.operands)
        for node in nodes_behind(prediction.edge())
    )


SUMS = {"__add__", "__radd__", "__sub__", "__rsub__"}


def is_data(value: Any) -> bool:
    """Whether a value is neither a number, nor trained, nor computed by what is."""
    if isinstance(value, Unknown):
        return value.graph is None and not (value.hint or value.is_setting or value.cuts or value.carries)
    return (
        isinstance(value, Tensor)
        and value.needs_grad() is False
        and not value.is_parameter
        and not value.cuts
    )


def is_log_probability(value: Any) -> bool:
    """A value that is named so, or was computed by a logarithm and picked, summed or reshaped since."""
    if not isinstance(value, Tensor):
        return False
    if suggests("log probability", value.label):
        return True
    edge: Any = value.node
    for _ in range(6):
        if not isinstance(edge, Node) or edge.op in LOGARITHMS:
            break
        edge = edge.inputs[0] if edge.op in PASSING and edge.inputs else None
    return isinstance(edge, Node) and edge.op in LOGARITHMS


LOGARITHMS = {"log", "log_prob", "log_softmax"}
PASSING = {
    "neg",
    "gather",
    "reshape",
    "view",
    "squeeze",
    "unsqueeze",
    "sum",
    "flatten",
    "index",
    "select",
    "getitem",
}
