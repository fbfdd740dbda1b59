"""Terms of a loss that train nothing: what they were computed from was cut off on the way, while other terms train it.

`(alpha * log_pi - critic(state, action.detach())).mean().backward(); actor_optimizer.step()`: the second term has a graph,
but only to the critic, which this step does not move.  *Moved*: what the optimizers hold that step after a backward and
before the next one.  A term is dead if its graph reaches nothing that is moved, a cut in it has moved parameters behind it,
and the rest of the loss reaches those.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.cut_terms import blamed_of, order_of, outermost_of
from gradsight.detect.gradient_flow import LINEAR, GradientFlow, nodes_behind
from gradsight.detect.moving_targets import is_log_probability
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Cut, Edge, Maybe, Node, Tensor, leaves_of
from gradsight.model.trace import Augmented, Backward, Clearing, Combined, Stepped

KINDS = {"detach", "data", "no_grad", "inference", "sample"}


class Term:
    """One side of a sum, with the other."""

    __slots__ = ("partner", "site", "tensor")

    def __init__(self, tensor: Tensor, partner: Tensor, site: Site) -> None:
        self.tensor = tensor
        self.partner = partner
        self.site = site


class DeadTerms:
    """Remembers sums that hold a cut; concludes when it is known who steps on them."""

    def __init__(self, path: Path, claims: Claims, flow: GradientFlow) -> None:
        self.path = path
        self.claims = claims
        self.flow = flow
        self.sums: dict[Node, list[Term]] = {}
        self.pending: list[Term] = []
        """Terms of the loss that went backward last."""
        self.run: Any = None
        self.moved: set[Tensor] = set()
        self.moves_more = False
        """Whether an optimizer that steps holds parameters that are not known."""

    def on_combined(self, fact: Combined) -> None:
        if fact.operator in ("__add__", "__radd__", "__sub__", "__rsub__"):
            self.added(fact.left, fact.right, fact.result, fact.node)

    def on_augmented(self, fact: Augmented) -> None:
        if isinstance(fact.statement.op, (ast.Add, ast.Sub)):
            self.added(fact.current, fact.operand, fact.result, fact.statement)

    def added(self, left: Any, right: Any, result: Any, node: ast.AST) -> None:
        if not isinstance(result, Tensor) or result.node is None or len(self.sums) > MOST_SUMS:
            return
        for tensor, partner in ((left, right), (right, left)):
            if isinstance(tensor, Tensor) and isinstance(partner, Tensor) and partner.node is not None:
                if any(cut.kind in KINDS for cut in tensor.cuts):
                    term = Term(tensor, partner, self.path.site(node))
                    self.sums.setdefault(result.node, []).append(term)

    def on_backward(self, fact: Backward) -> None:
        if self.run is not None and self.run.loss.node is fact.run.loss.node and self.pending:
            # One loss for several optimizers, differentiated once for each: what it trains is known after the last.
            self.run = fact.run
            return
        self.conclude()
        if self.sums:
            run = fact.run
            chain = linear_chain(run.loss.edge())
            self.pending = [term for node in self.sums if node in chain for term in self.sums[node]]
            self.run = run
            self.sums.clear()

    def on_stepped(self, fact: Stepped) -> None:
        if self.pending:
            self.moved.update(self.path.parameters_of(fact.optimizer))
            self.moves_more |= not self.path.knows_all_parameters(fact.optimizer)

    def on_clearing(self, fact: Clearing) -> None:
        node = self.run.loss.node if self.run is not None else None
        if self.moved and (node is None or node.freed is not None):
            self.conclude()

    def finish(self) -> None:
        self.conclude()

    def conclude(self) -> None:
        for term in self.pending if self.moved else ():
            cut = self.cut_of(term)
            if cut is not None:
                steps = [
                    Step("read", term.site, "added to the loss here"),
                    Step("needed", self.run.site, "this backward does not train it by this term"),
                    *self.path.call_steps(cut.site),
                ]
                self.claims.add(
                    "term-cut", cut.site, steps, cut=cut.kind, op=cut.op, source=cut.source.label, dead=True
                )  # fmt: skip
        self.pending, self.moved, self.moves_more = [], set(), False

    def cut_of(self, term: Term) -> Cut | None:
        """The cut that makes a term dead, the last one that was made."""
        edge, flag = term.tensor.edge(), term.tensor.needs_grad()
        rest_flag = term.partner.needs_grad()
        if any(isinstance(one, Maybe) and one.weak for one in (flag, rest_flag)):
            # What is not known here may bring a graph of its own, or have none beside which a term could be missed.
            return None
        if flag is True and edge is not None:
            if self.moves_more or leaves_of([edge]) & self.moved:
                return None
        rest = self.run.leaves & self.moved
        within = linear_chain(term.partner.edge())
        found: list[Cut] = []
        # What a later cut was made of had its graph until then: a parameter keeps the cuts of the values it began with.
        outermost = outermost_of(term.tensor.cuts)
        candidates = blamed_of([cut for cut in outermost if cut.kind in KINDS])
        for cut in sorted(candidates, key=order_of, reverse=True):
            lost = self.flow.leaves_behind(cut) & self.moved
            source = cut.source.node
            if not lost & rest or source is None or source.freed not in (None, self.run.site):
                continue
            if cut.kind == "sample" and is_log_probability(term.partner):
                # The density of a squashed sample: what it is corrected by is a constant of the sample.
                continue
            if source in within or term.partner.node in nodes_behind(source):
                # A part of the other term, or a correction of it, whose value alone is wanted.
                continue
            found.append(cut)
        # Of several, the chance of an action is rather to be learned than what it is weighted by.
        return next((cut for cut in found if is_log_probability(cut.source)), found[0] if found else None)


MOST_SUMS = 400


def linear_chain(start: Edge | None) -> set[Node]:
    """The nodes between a loss and its terms."""
    found: set[Node] = set()
    todo: list[Edge] = [start] if start is not None else []
    while todo:
        current = todo.pop()
        if isinstance(current, Node) and current not in found:
            found.add(current)
            if current.op in LINEAR:
                todo.extend(current.inputs)
    return found
