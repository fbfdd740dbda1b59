"""Gradients that do not arrive: parameters that starve behind a cut, and `.grad` that is None because of one."""

from __future__ import annotations

import ast
from itertools import takewhile
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.mode_cuts import steps_of_mode
from gradsight.detect.path import Path
from gradsight.detect.phases import belongs_to_an_early_phase
from gradsight.detect.replaced_parameters import ReplacedParameters
from gradsight.interp.paths.roles import is_follower_name
from gradsight.interp.syntax import named_last
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.name_hints import suggests
from gradsight.model.sites import Site
from gradsight.model.tensors import Cut, Edge, Node, Tensor, leaves_of
from gradsight.model.trace import (
    AbsentGradUsed,
    ContainerMade,
    Declared,
    Identified,
    Read,
    StateLoaded,
    Stepped,
    Stepping,
    Wrapped,
)
from gradsight.model.values import AbsentGrad, Instance, Layer, Mapping

MOST_OTHERS = 3
LINEAR = {"add", "sub", "mul", "div", "neg", "mean", "sum", "stack", "cat", "add_", "sub_", "mul_", "div_", "index", "squeeze", "to"}  # fmt: skip
INITIALISING = (
    "init.",
    "uniform_",
    "normal_",
    "zero_",
    "fill_",
    "ones_",
    "trunc_normal_",
    "reset_parameters",
)
"""Writes that make a parameter: what they leave is as good as fresh."""
COMPARING = {
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "cosine_similarity", "MSELoss", "L1Loss", "SmoothL1Loss",
    "HuberLoss", "KLDivLoss", "CosineSimilarity", "cross_entropy", "CrossEntropyLoss", "binary_cross_entropy",
}  # fmt: skip
"""Functions that hold a prediction against a target."""
DIFFERING = COMPARING | {"sub"}
"""… and the difference of the two, of which such a function can be made."""


class GradientFlow:
    """Conclusions about gradients that do not arrive."""

    def __init__(self, path: Path, claims: Claims, replaced: ReplacedParameters) -> None:
        self.path = path
        self.claims = claims
        self.replaced = replaced
        self.fed: dict[tuple[Any, Tensor], int] = {}
        """Steps, by their place, and the parameters for which they had a gradient: when last."""
        self.fed_by: dict[Tensor, set[Optimizer]] = {}
        """Optimizers that found a gradient in a parameter when they stepped."""
        self.starved: list[tuple[Tensor, list[Any], Site, Optimizer]] = []
        """Steps that had no gradient for a parameter, the backwards before them, and whose steps they were."""
        self.starved_since: dict[tuple[Any, Tensor], int] = {}
        self.cut_leaves: dict[Cut, set[Tensor]] = {}
        self.declared: dict[Tensor, Site] = {}
        self.loaded: set[Tensor] = set()
        """Parameters whose values were loaded."""
        self.last_steps: dict[Optimizer, int] = {}
        self.without: set[tuple[Any, ...]] = set()
        """Where tensors were made that require no grad, and whose gradient was used all the same."""

    # -- starving parameters -----------------------------------------------------------------------------------------

    def on_stepping(self, fact: Stepping) -> None:
        optimizer, site = fact.optimizer, fact.site
        since = self.last_steps.get(optimizer, optimizer.created)
        # They follow each other in time: those before the last step are many in a long program.
        runs = list(takewhile(lambda run: run.tick > since, reversed(self.path.backwards)))[::-1]
        if self.path.gradients_unknown or optimizer.escaped or optimizer.is_guessed():
            return
        if runs:
            for parameter in self.path.parameters_of(optimizer):
                if parameter.requires_grad is True and parameter.is_leaf:
                    self.check_starved(parameter, runs, since, site, optimizer)

    def on_stepped(self, fact: Stepped) -> None:
        self.last_steps[fact.optimizer] = self.path.tick

    def check_starved(
        self, parameter: Tensor, runs: list[Any], since: int, site: Site, optimizer: Optimizer
    ) -> None:
        """A parameter is stepped, data of it reached a loss, and no gradient came back.

        What another network's backward left in it and `zero_grad` took away again is none: of a backward after that, only
        what that one brings counts.
        """
        last = self.path.live_gradient_ticks.get(parameter, -1)
        cleared = self.path.cleared_ticks.get(parameter, -1)
        later = [run for run in runs if run.tick > cleared]
        is_fed = last > max(since, cleared) if later else last > since
        if is_fed or parameter in self.replaced.retired:
            self.fed[site.key, parameter] = self.path.tick
            self.fed_by.setdefault(parameter, set()).add(optimizer)
            if is_stand_in(parameter):
                self.claims.granted.add(("path-cut", f"{site.key} {parameter.label}"))
            return
        runs = later or runs
        forgotten = self.loss_never_differentiated(parameter, site)
        causes = [cut for run in runs for cut in run.cuts if parameter in self.leaves_behind(cut)]
        if forgotten is not None and causes:
            if not any(forgotten.node in nodes_behind(cut.source.edge()) for cut in causes):
                steps = [Step("made", forgotten.site, f"`backward()` is never called on `{forgotten.label}`")]
                self.claims.add("step-without-backward", site, steps, loss=forgotten.label)
                return
        self.starved.append((parameter, runs, site, optimizer))
        self.starved_since.setdefault((site.key, parameter), self.path.tick)

    def finish(self) -> None:
        """A parameter that the same step moves in a later round is trained: the cut belongs to a phase.

        One that was moved at first and then never again has lost its gradient.
        """
        for parameter, runs, site, optimizer in self.starved:
            known = (site.key, parameter)
            if self.fed_by.get(parameter, set()) - {optimizer}:
                # Another optimizer moves it by what it gets: that this one holds it, too, is the fault, and no cut.
                continue
            if parameter in optimizer.doubtful and self.feeds_another(optimizer, site):
                # It may be made for that other module alone, and this one be meant to stay as it is.
                continue
            if is_supposed(optimizer) and is_written_by_hand(parameter):
                # What follows another module by hand is none of those that an optimizer which nobody saw being made is for.
                continue
            if known in self.fed and self.path.ended_early:
                # Of what is applied again and again, less and less was followed.
                continue
            if not optimizer.is_guessed() and self.fed.get(known, -1) < self.starved_since[known]:
                self.explain_absence(parameter, runs, site, stepped=True)
        if not self.path.optimizers and self.path.context == "script" and not self.path.ended_early:
            self.explain_copies()

    def explain_copies(self) -> None:
        """A script that takes no step: what is behind `torch.tensor(terms)` in a loss, and gets no gradient at all."""
        runs = [] if self.path.gradients_unknown else self.path.backwards
        reached = {leaf for run in runs for leaf in run.leaves}
        for run in runs:
            for cut in run.cuts:
                lost = self.leaves_behind(cut) - reached if cut.kind == "copy" else set()
                lost = {leaf for leaf in lost if leaf.requires_grad is True}
                if lost and not self.makes_target(cut, run):
                    if not self.path.escaped_between(lost, cut.tick, run.tick):
                        self.report_cut(cut, min(lost, key=lambda leaf: leaf.serial), run, run.site, [])
                    return

    def feeds_another(self, optimizer: Optimizer, site: Site) -> bool:
        """Whether something that the optimizer holds gets gradients before this step."""
        return any((site.key, other) in self.fed for other in self.path.parameters_of(optimizer))

    def loss_never_differentiated(self, parameter: Tensor, site: Site) -> Tensor | None:
        """A named scalar, or what is called a loss, beside the step: it depends on the parameter and had no backward."""
        for value in list(site.frame.namespace.values()):
            if not isinstance(value, Tensor) or value.node is None or not value.label:
                continue
            if value.shape == () or (value.shape is None and suggests("loss", value.label)):
                if value.node.walked is None and parameter in leaves_of([value.node]):
                    return value
        return None

    def explain_absence(self, parameter: Tensor, runs: list[Any], site: Site, stepped: bool = False) -> None:
        for run in reversed(runs):
            if not run.leaves and run.loss.needs_grad() is not False and not run.is_bare:
                # Its graph comes from code that is not known, which may have used the parameter.
                return
            if parameter in run.zero_leaves:
                self.zero_gradient(parameter, run)
                return
            causes = [cut for cut in run.cuts if parameter in self.leaves_behind(cut)]
            if causes:
                straight = [cut for cut in causes if self.passes_straight_through(cut, run)]
                meant = [cut for cut in causes if cut not in straight and cut.kind != "op"]
                if meant and straight:
                    # What chose the code has no gradient by its nature, and lies behind the cuts of what was chosen.
                    earlier = {
                        one for cut in meant if cut.source.needs_grad() is True for one in cut.source.cuts
                    }
                    causes = [cut for cut in meant if cut not in earlier] or meant
                blamed = [cut for cut in causes if not self.makes_target(cut, run)] if len(causes) > 1 else []
                cut = max(blamed or causes, key=lambda cut: (cut.tick, cut.serial))
                if self.path.escaped_between({parameter}, cut.tick, run.tick):
                    # Code that was not followed got it since, and may have used it for this loss.
                    return
                source = cut.source.node
                if (site.key, parameter) in self.fed and source is not None:
                    if source.freed not in (None, run.site):
                        # A state that is carried over: what it was made of has had a backward of its own.
                        return
                if not stepped or not (
                    belongs_to_an_early_phase(cut.site, site)
                    or is_an_option(cut.site)
                    or self.only_applies_what_was_loaded(cut)
                    or is_target_network(cut, parameter)
                    or self.follows_another(cut, parameter)
                ):
                    self.report_cut(cut, parameter, run, site, blamed or causes)
                return

    def only_applies_what_was_loaded(self, cut: Cut) -> bool:
        """Whether a model applies a pretrained part of it in a block with grad mode off: it takes that part as it is."""
        function, owner = cut.site.frame.function, cut.site.frame.owner
        in_forward = function is not None and function.name == "forward" and owner is not None
        return in_forward and cut.kind == "no_grad" and self.leaves_behind(cut) <= self.loaded

    def follows_another(self, cut: Cut, parameter: Tensor) -> bool:
        """Whether a part that is named after following another one is applied with grad mode off, and was loaded or is moved by hand."""
        if cut.kind not in ("no_grad", "inference"):
            return False
        for module in self.path.modules_made:
            for name, part in module.attributes.items():
                if isinstance(part, (Instance, Layer)) and part.module is not None and is_follower_name(name):
                    owned = [one for _, one in self.path.tensors_of(part, "parameter")]
                    if any(parameter is one for one in owned):
                        # Of a loop that moves them all, some rounds are executed.
                        return parameter in self.loaded or any(map(is_moved_by_hand, owned))
        return False

    def makes_target(self, cut: Cut, run: Any) -> bool:
        """Whether what was cut off is only held against a prediction: a target is meant to be constant."""
        found = False
        for node in nodes_behind(run.loss.edge()):
            for operand in node.operands:
                if cut in operand.cuts and operand.needs_grad() is False:
                    if node.op not in COMPARING:
                        return False
                    found = True
        return found

    def passes_straight_through(self, cut: Cut, run: Any) -> bool:
        """`z + (code - z).detach()`: the value of one side and the gradient of the other, which learns."""
        made = cut.source.node
        if cut.kind not in ("detach", "data") or made is None or made.op not in ("sub", "rsub"):
            return False
        sides = [operand for operand in made.operands if operand.node is not None]
        if len(sides) != 2:
            return False
        joined = {
            operand.node
            for node in nodes_behind(run.loss.edge())
            if node.op == "add" and any(cut in operand.cuts for operand in node.operands)
            for operand in node.operands
        }
        return any(side.node in joined for side in sides)

    def leaves_behind(self, cut: Cut) -> set[Tensor]:
        """The leaves whose gradient stops at the cut, through earlier cuts too."""
        known: set[Tensor] | None = self.cut_leaves.get(cut)
        if known is None:
            known = leaves_of(cut.edges)
            self.cut_leaves[cut] = known
        return known

    def report_cut(self, cut: Cut, parameter: Tensor, run: Any, site: Site, others: list[Cut]) -> None:
        hidden = next((leaf for leaf in run.leaves if cut in leaf.cuts and leaf in self.declared), None)
        steps = [Step("made", cut.source.site, "still in the graph here"), *steps_of_mode(cut)]
        if hidden is not None:
            steps.append(
                Step(
                    "made",
                    self.declared[hidden],
                    "`requires_grad` is set again here, which hides the cut",
                )
            )
        places = {one.site.key: one.site for one in others if one.site.key != cut.site.key}
        steps += [Step("cut", place, "its other way to the loss is cut here") for place in places.values()][
            :MOST_OTHERS
        ]
        steps.append(Step("needed", run.site, "this `backward()` stops at the cut"))
        steps += self.path.call_steps(cut.site)
        # Those of a module that is not known may be fed where another arm is taken.
        elsewhere = {"granted_at": f"{site.key} {parameter.label}"} if is_stand_in(parameter) else {}
        self.claims.add(
            "path-cut",
            cut.site,
            steps,
            **elsewhere,
            cut=cut.kind,
            op=cut.op,
            source=cut.source.label,
            hidden=hidden is not None,
            parameter=parameter.label,
        )

    def on_state_loaded(self, fact: StateLoaded) -> None:
        self.loaded.update(tensor for _, tensor in self.path.tensors_of(fact.module, "parameter"))

    def on_declared(self, fact: Declared) -> None:
        if fact.tensor.cuts:
            self.declared[fact.tensor] = fact.site

    def zero_gradient(self, parameter: Tensor, run: Any) -> None:
        """The gradient arrives and is identically zero: find the operator that makes it so."""
        edge = run.loss.edge()
        todo: list[Edge] = [edge] if edge is not None else []
        seen: set[Node] = set()
        while todo:
            current = todo.pop()
            if not isinstance(current, Node) or current in seen:
                continue
            seen.add(current)
            if current.zero and parameter in leaves_of(current.inputs):
                self.claims.add(
                    "path-cut",
                    current.site,
                    [
                        Step("needed", run.site, "this `backward()` gives only zeros"),
                        *self.path.call_steps(current.site),
                    ],
                    cut="zero",
                    op=current.op,
                    source=parameter.label,
                    hidden=False,
                    parameter=parameter.label,
                )
                return
            todo.extend(current.inputs)

    def absent_grad_kept(self, absent: AbsentGrad) -> None:
        """A gradient that is None is printed or stored: if a cut is the reason, say so."""
        if absent.cause == "non-leaf":
            self.claims.add(
                "grad-of-non-leaf",
                absent.site,
                [
                    Step("made", absent.owner.site, "computed here, so it is not a leaf"),
                    *self.path.call_steps(absent.site),
                ],
                target=absent.owner.label,
                used=False,
            )
        elif absent.cause == "never" and self.path.backwards:
            self.explain_absence(absent.owner, self.path.backwards, absent.site)

    def on_identified(self, fact: Identified) -> None:
        for absent, other in ((fact.left, fact.right), (fact.right, fact.left)):
            if isinstance(absent, AbsentGrad) and absent.cause == "non-leaf" and other is None:
                made = absent.owner.node
                if made is not None and made.walked is not None:
                    self.absent_grad_kept(absent)

    def on_read(self, fact: Read) -> None:
        value, node = fact.value, fact.node
        if isinstance(value, AbsentGrad):
            self.absent_grad_kept(value)
        elif isinstance(value, Tensor) and value.grad_of is not None and value.snapshot == "grad":
            leaf = value.grad_of
            if (
                leaf in self.path.gradient_ticks
                and leaf not in self.path.live_gradient_ticks
                and self.path.backwards
            ):
                self.explain_absence(leaf, self.path.backwards, self.path.site(node))

    def on_absent_grad_used(self, fact: AbsentGradUsed) -> None:
        """If a cut is the reason, it is told; else that None was used as a tensor."""
        absent = fact.absent
        before = len(self.claims.events)
        if absent.cause == "never" and self.path.backwards:
            self.explain_absence(absent.owner, self.path.backwards, absent.site)
        if len(self.claims.events) == before:
            self.absent_grad_used(absent, fact.node)

    def absent_grad_used(self, absent: AbsentGrad, node: ast.AST) -> None:
        """None was read from `.grad` and is used as a tensor."""
        site = self.path.site(node)
        steps = [Step("read", absent.site, "read here"), *self.path.call_steps(absent.site)]
        if absent.cause == "non-leaf":
            self.claims.add(
                "grad-of-non-leaf",
                absent.site,
                [
                    Step("made", absent.owner.site, "computed here, so it is not a leaf"),
                    Step("needed", site, "used here while it is None"),
                    *self.path.call_steps(absent.site),
                ],
                target=absent.owner.label,
                used=True,
            )
        elif absent.cause == "never" and (
            self.path.backward_passed_by() or (self.path.backwards and self.path.context != "script")
        ):
            # What a function was given may stand between its loss and a parameter.
            return
        elif absent.cause in ("never", "cleared", "needs-none", "without"):
            if absent.site.key == site.key:
                steps = steps[1:]
            if absent.cause == "without":
                # The program ends at the first of them.
                if absent.owner.site.key in self.without:
                    return
                self.without.add(absent.owner.site.key)
                steps.insert(
                    0, Step("made", absent.owner.site, "made here: a new tensor that does not require grad")
                )
            self.claims.add("grad-is-none", absent.site, steps, target=absent.owner.label, cause=absent.cause)

    def on_container_made(self, fact: ContainerMade) -> None:
        if fact.how == "dict" and isinstance(fact.container, Mapping):
            for value in fact.container.items.values():
                self.value_kept(value, fact.node)

    def value_kept(self, value: Any, node: ast.AST) -> None:
        if isinstance(value, AbsentGrad):
            self.absent_grad_kept(value)
        elif isinstance(value, Tensor) and value.snapshot:
            self.path.tell(Read(value, node))

    def on_wrapped(self, fact: Wrapped) -> None:
        value, site = fact.value, fact.site
        if value.is_leaf or value.needs_grad() is not True:
            return
        frame = self.path.frame
        if (
            frame.function is not None
            and frame.function.name == "forward"
            and frame.owner is not None
            and frame.owner.kind == "module"
        ):
            self.claims.add(
                "path-cut",
                site,
                [Step("made", value.site, "still in the graph here")],
                cut="parameter",
                op="nn.Parameter",
                source=value.label,
                hidden=False,
                parameter="",
            )


def is_target_network(cut: Cut, parameter: Tensor) -> bool:
    """Whether a deep copy of a module is applied with grad mode off: it is to follow, whoever holds its parameters."""
    call = parameter.site.node
    return (
        cut.kind in ("no_grad", "inference")
        and isinstance(call, ast.Call)
        and named_last(call.func) == "deepcopy"
    )


def is_supposed(optimizer: Optimizer) -> bool:
    """Whether nothing tells what an optimizer holds but what is trained beside it."""
    return optimizer.path == "torch.optim.Optimizer"


def is_stand_in(parameter: Tensor) -> bool:
    """Whether a parameter stands for those of a module that is not known."""
    return bool((parameter.attributes or {}).get("<stand in>"))


def is_an_option(site: Site) -> bool:
    """Whether the caller asked for it: an argument decides between this block with grad mode off and the same with it."""
    function = site.frame.function
    if function is None:
        return False
    arguments = {part.arg for part in syntax_parts(function.node.args) if isinstance(part, ast.arg)}
    for part in syntax_parts(function.node):
        if isinstance(part, ast.If) and isinstance(part.test, ast.Name) and part.test.id in arguments:
            for block in part.body:
                if isinstance(block, ast.With) and any(
                    item.context_expr is site.node for item in block.items
                ):
                    return any(names_called(block) & names_called(statement) for statement in part.orelse)
    return False


def names_called(node: ast.AST) -> set[str]:
    return {
        part.func.id
        for part in syntax_parts(node)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
    }


def nodes_behind(start: Edge | None) -> set[Node]:
    """Every node that a backward from here executes."""
    seen: set[Node] = set()
    todo: list[Edge] = [start] if start is not None else []
    while todo:
        edge = todo.pop()
        if isinstance(edge, Node) and edge not in seen:
            seen.add(edge)
            todo.extend(edge.inputs)
    return seen


def is_moved_by_hand(parameter: Tensor) -> bool:
    """Whether a statement writes a parameter with grad mode off from what something else holds."""
    return any(
        write.mode in ("no_grad", "silent") and not write.op.startswith(INITIALISING)
        for write in parameter.storage.writes
    )


def is_written_by_hand(parameter: Tensor) -> bool:
    """Whether a statement writes a leaf, which torch allows with grad mode off or through another name alone: `p.detach().copy_(…)`."""
    return parameter.is_leaf and any(
        write.mode in ("graph", "no_grad", "silent") and not write.op.startswith(INITIALISING)
        for write in parameter.storage.writes
    )
