"""Graphs kept alive longer than their backward: running totals and lists of losses."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.aliases import Aliases
from gradsight.interp.sites import Site
from gradsight.interp.tensors import Node, Tensor
from gradsight.model.events import Step


class Retention(Aliases):
    """What holds a graph after its backward has run."""

    def before_augmented(self, node: ast.AugAssign, current: Tensor, operand: Any) -> None:
        self.note_total(node, operand)

    def accumulated(self, node: ast.AugAssign, current: Any, operand: Any, result: Any) -> None:
        self.note_total(node, operand)

    def note_total(self, node: ast.AugAssign, operand: Any) -> None:
        if (
            isinstance(operand, Tensor)
            and isinstance(node.op, ast.Add)
            and operand.needs_grad() is True
            and self.frame.loops
            and operand.shape in ((), None)
        ):
            self.totals.append((node, self.site(node), operand, operand.edge()))

    totals: list[Any]
    stored_graphs: list[Any]

    def tensor_stored(self, tensor: Tensor, site: Site) -> None:
        if tensor.requires_grad is True and tensor.node is not None and site.loops:
            self.stored_graphs.append((tensor, site, self.tick))

    def judge_stored(self) -> None:
        """Tensors put into a list after their backward has run: each keeps its dead graph alive."""
        reached = {run.loss.edge() for run in self.backwards}
        walked: dict[Any, int] = {}
        rounds: dict[Any, set[Any]] = {}
        for tensor, site, tick in self.stored_graphs:
            edge = tensor.node
            freed = edge.freed if edge is not None else None
            if edge is None or freed is None:
                continue
            after = any(run.site is freed and run.tick < tick for run in self.backwards)
            if after or edge in reached:
                rounds.setdefault(site.key, set()).add(site.loops[-1][1])
                walked[site.key] = walked.get(site.key, 0) + 1
                if len(rounds[site.key]) == 2 and walked[site.key] == 2:
                    self.emit(
                        "graph-kept-alive",
                        site,
                        [Step("made", tensor.site, "made here"), *self.call_steps(site)],
                        target="the list",
                        loss=tensor.label,
                    )

    def judge_totals(self) -> None:
        """A running total of losses whose backward has already run."""
        reached: set[Any] = set()
        for run in self.backwards:
            reached.add(run.loss.edge())
        counts: dict[Any, int] = {}
        for node, site, operand, edge in self.totals:
            if isinstance(edge, Node) and edge.freed is not None and edge in reached:
                counts[node] = counts.get(node, 0) + 1
                if counts[node] == 2:
                    self.emit(
                        "graph-kept-alive",
                        site,
                        [Step("made", operand.site, "the loss is made here")],
                        target=self.text_of_target(site),
                        loss=operand.label,
                    )
