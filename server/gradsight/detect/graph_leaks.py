"""Graphs kept alive longer than their backward: running totals and lists of losses."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_flow import LINEAR
from gradsight.detect.naming import value_of_target
from gradsight.detect.path import Path
from gradsight.detect.resets import is_among, is_let_go
from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Edge, Node, Tensor
from gradsight.model.trace import Assigned, Augmented, Stored
from gradsight.model.values import Instance, Seq, Unknown, tensors_in

SCALES = {"mul", "div", "neg"}
SUMS = {"add", "sub"}
KEEPING = LINEAR | {"CopySlices", "select", "slice", "__getitem__"}
"""What a total is made by: sums and multiples, and writes into a part of a tensor, `stats[0] += loss`."""
MOST_TERMS = 32
"""How many terms of a loss are told apart."""


class GraphLeaks:
    """What holds a graph after its backward has run."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.totals: list[tuple[ast.AugAssign | ast.Assign, Site, Node, bool]] = []
        """Additions to a total: what the total is made of then, or, where the total is not known, what was added."""
        self.stored_graphs: list[tuple[Tensor, Site, int, Any]] = []

    def finish(self) -> None:
        self.conclude_totals()
        self.conclude_stored()

    # -- totals ------------------------------------------------------------------------------------------------------

    def on_augmented(self, fact: Augmented) -> None:
        # An object of the program's own says itself, in `__iadd__`, what it keeps.
        own = isinstance(fact.current, Instance)
        adds = isinstance(fact.statement.op, ast.Add) and adds_graph(fact.operand)
        if adds and self.path.frame.loops and not own:
            self.note_total(fact.statement, fact.operand, fact.result)

    concerning = (ast.BinOp, ast.IfExp)

    def on_assigned(self, fact: Assigned) -> None:
        node = fact.statement
        if len(self.path.frame.loops) > 0 and remembered(node, "adds to its target", adds_to_target):
            value = value_of_target(self.path, node.targets[0])
            if adds_graph(value):
                self.note_total(node, value, value)
            elif isinstance(value, Seq) and value.items:
                self.note_longer_list(value.items[-1], node)

    def note_total(self, node: ast.AugAssign | ast.Assign, operand: Tensor, total: Any) -> None:
        known = isinstance(total, Tensor)
        holder = total if known else operand
        if holder.needs_grad() is True and holder.node is not None:
            self.totals.append((node, self.path.site(node), holder.node, known))

    def conclude_totals(self) -> None:
        """A running total of losses whose backward has already run."""
        losses = self.differentiated()
        counts: dict[ast.AST, int] = {}
        used = {
            node
            for node, _, made, known in self.totals
            if known and made.walked is not None and made not in losses
        }
        for node, site, made, known in self.totals:
            if known and (made in losses or node in used):
                # The total, or something made of it, is what is differentiated.
                continue
            dead = dead_graphs(made, losses)
            if dead:
                counts[node] = len(dead) if known else counts.get(node, 0) + len(dead)
                place = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
                if counts[node] >= 2 and not is_let_go(place, site):
                    self.kept_alive_by(site, dead[0], self.target_of(site))

    def target_of(self, site: Site) -> str:
        node = site.node
        return (
            ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else self.path.text_of_target(site)
        )

    # -- lists -------------------------------------------------------------------------------------------------------

    def on_stored(self, fact: Stored) -> None:
        tensor, site = fact.tensor, fact.site
        if tensor.requires_grad is True and tensor.node is not None and site.loops:
            self.stored_graphs.append((tensor, site, self.path.tick, fact.container))

    def note_longer_list(self, last: Any, node: ast.Assign) -> None:
        """`losses = losses + [loss]` keeps what `losses.append(loss)` keeps."""
        for tensor in tensors_in(last, 3):
            self.on_stored(Stored(tensor, self.path.site(node)))

    def conclude_stored(self) -> None:
        """Tensors put into a list after their backward has run: each keeps its dead graph alive."""
        losses = self.differentiated()
        told: set[Any] = set()
        rounds: dict[Any, set[Any]] = {}
        for tensor, site, tick, container in self.stored_graphs:
            edge = tensor.node
            freed = edge.freed if edge is not None else None
            after = freed is not None and any(
                run.site is freed and run.tick < tick for run in self.path.backwards
            )
            dead = [loss.node.freed for loss in dead_graphs(edge, losses) if loss.node is not None]
            if tensor.shape == () and not dead:
                dead = [freed_behind(edge)]
            ends = [*dead, *([freed] if after else [])]
            is_held = bool(ends) and holds(container, tensor)
            storing = next(
                (found for end in ends if (found := round_of(site, end, is_held)) is not None), None
            )
            if storing is not None:
                # A container that is made in every round keeps the graphs of that round alone.
                held = rounds.setdefault((site.key, id(container)), set())
                held.add(storing)
                if len(held) == 2 and site.key not in told and not self.is_emptied(site):
                    told.add(site.key)
                    self.kept_alive_by(site, tensor, "the list")

    def is_emptied(self, site: Site) -> bool:
        """Whether the loop that fills a container takes from it as well."""
        node = site.node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return is_let_go(node.func.value, site)
        if isinstance(node, ast.AugAssign | ast.Assign):
            return is_let_go(node.target if isinstance(node, ast.AugAssign) else node.targets[0], site)
        return False

    def differentiated(self) -> dict[Edge | None, Tensor]:
        """The losses whose backward ran, by their nodes; of `(loss / 4 + penalty).backward()` both terms are, too."""
        return {
            edge: run.loss for run in self.path.backwards[::-1] for edge in multiples(run.loss.edge())[::-1]
        }

    def kept_alive_by(self, site: Site, loss: Tensor, target: str) -> None:
        steps = [Step("made", loss.site, "computed here, with its graph"), *self.path.call_steps(site)]
        self.claims.add("graph-kept-alive", site, steps, target=target, loss=loss.label)


def round_of(site: Site, freed: Site | None, is_held: bool) -> int | None:
    """The round of the loop that stores, if it is one that goes on to further backwards: its rounds add up.

    A library may store in a loop of its own, over the functions that want to hear of a round; so may the program, over the
    terms of a loss, if what it stores is in its container to the end.
    """
    for run, number in reversed(site.loops):
        if freed is not None and any(run is other for other, _ in freed.loops):
            return int(number)
        if not (is_held or run.site.frame.unit.library):
            return None
    return None


def adds_graph(value: Any) -> bool:
    """Whether a value is one number with a graph."""
    return (
        isinstance(value, Tensor)
        and value.shape in ((), None)
        and value.needs_grad() is True
        and value.node is not None
    )


def multiples(edge: Edge | None) -> list[Edge | None]:
    """The node of a value, and of what it is a plain sum or multiple of."""
    found: list[Edge | None] = []
    todo = [edge]
    while todo and len(found) < MOST_TERMS:
        current = todo.pop(0)
        found.append(current)
        if isinstance(current, Node) and current.op in (SUMS if len(current.inputs) > 1 else SCALES | SUMS):
            todo.extend(current.inputs)
    return found


def dead_graphs(start: Node | None, losses: dict[Edge | None, Tensor]) -> list[Tensor]:
    """The losses, of those whose backward has run, that a value is a plain sum or multiple of."""
    todo: list[Edge] = [start] if start is not None else []
    seen: set[Node] = set()
    found: list[Tensor] = []
    while todo:
        edge = todo.pop()
        if not isinstance(edge, Node) or edge in seen:
            continue
        seen.add(edge)
        if edge.freed is not None and edge in losses:
            found.append(losses[edge])
        elif edge.op in KEEPING:
            todo.extend(edge.inputs)
    return found


def freed_behind(start: Node | None) -> Site | None:
    """The backward that freed what a number is a plain sum or mean of, if it did not go through the number itself."""
    edge: Edge | None = start
    while isinstance(edge, Node) and edge.freed is None and edge.op in LINEAR and len(edge.inputs) == 1:
        edge = edge.inputs[0]
    return edge.freed if isinstance(edge, Node) else None


def adds_to_target(node: ast.Assign) -> bool:
    """Whether an assignment adds something to what its target held before."""
    if len(node.targets) != 1 or not isinstance(node.targets[0], (ast.Name, ast.Attribute, ast.Subscript)):
        return False
    place = node.targets[0]
    if not adds_something(node.value):
        return False
    if isinstance(place, ast.Name):
        return is_among(syntax_parts(node.value), place)
    kinds: tuple[type[ast.AST], ...] = (ast.Name, ast.Attribute)
    wanted = {ast.unparse(place)}
    if isinstance(place, ast.Subscript):
        # `totals[name] = totals.get(name, 0.0) + loss`
        kinds = (ast.Subscript, ast.Call)
        wanted.add(f"{ast.unparse(place.value)}.get({ast.unparse(place.slice)}")
    if isinstance(place, ast.Attribute):
        # `self.total = getattr(self, "total", 0) + loss`
        kinds = (*kinds, ast.Call)
        wanted |= {f"getattr({ast.unparse(place.value)}, {place.attr!r}"}
    reads = (inner for inner in syntax_parts(node.value) if isinstance(inner, kinds))
    return any(start_of(inner) in wanted for inner in reads)


def start_of(node: ast.AST) -> str:
    """A call up to its default: `totals.get(name`, `getattr(self, 'total'`; anything else as it is."""
    parts = ast.unparse(node).split(",")
    is_getattr = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr"
    return ",".join(parts[: 2 if is_getattr else 1]).rstrip(")")


def adds_something(value: ast.expr) -> bool:
    return any(
        isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add) for inner in syntax_parts(value)
    )


def holds(container: Any, tensor: Tensor) -> bool:
    """Whether a container still has a tensor, or the unknown value that it stands for."""
    items = container.items if isinstance(container, Seq) else []
    return any(tensor is one for one in tensors_in(container, 1)) or any(
        one.tensor is tensor for one in items if isinstance(one, Unknown)
    )
