"""What a backward fails on, told with its trail: stale values, freed graphs, and losses without a graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from gradsight.interp.machine import assumption_of
from gradsight.interp.regions import overlaps
from gradsight.interp.sites import Site
from gradsight.interp.tensors import Cut, Edge, Maybe, Node, Saved, Tensor, Write
from gradsight.interp.writes import Writer
from gradsight.model.events import Step
from gradsight.ops.traits import having

INFERENCE_NAMES = re.compile(
    r"predict|infer|eval|valid|test|generat|sampl|score|metric|embed|encode", re.IGNORECASE
)
"""Functions with such names run without grad mode on purpose."""


KEEPS_THE_OBJECT = having("keeps-object") | {"matmul"}
"""Operators that keep an argument as the object it is; others keep a view that they make of it, `linear` of its weight.

`matmul` does so for two matrices.
"""


class BackwardFaults(Writer):
    """The faults that a walk through the graph meets."""

    def saved_is_stale(self, node: Node, saved: Saved, site: Site, how: str, assumption: str) -> None:
        """A kept tensor has another version: torch refuses."""
        if not saved.certain or is_weak(node) or "running_" in saved.role:
            return
        writes = [
            write
            for write in saved.storage.writes
            if write.counter is saved.counter and write.version > saved.version
        ]
        if not writes:
            return
        write = writes[0]
        premise = assumption or assumption_of(node.requires)
        by_step = write.mode == "optimizer"
        kept = "result" if saved.role.startswith("result") else "input"
        name = saved.label or saved.tensor.label or self.text_of_target(write.site)
        written = self.text_of_target(write.site)
        if kept == "result" and write.site.call is not None and not (saved.label or saved.tensor.label):
            # A layer wrote what the layer before it in a sequence made: no name was ever given to it.
            name = written = f"the result of {node.op}"
        steps = [
            Step("saved", node.site, f"{node.op} keeps its {kept} for backward here"),
            *(Step("written", other.site, f"written again by {other.op} here") for other in writes[1:3] if other.site.key != write.site.key),
        ]  # fmt: skip
        if how != "assumed":
            steps.append(Step("needed", site, f"this {how} needs the old value"))
        steps += list(self.call_steps(write.site))
        self.emit(
            "saved-overwritten",
            write.site,
            steps,
            premise,
            op=node.op,
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

    def saved_is_changed(self, node: Node, saved: Saved, site: Site, how: str, assumption: str) -> None:
        """A kept tensor has other content under the same version: torch does not notice."""
        if not saved.certain or is_weak(node) or "running_" in saved.role:
            return
        writes = [
            write
            for write in saved.storage.writes
            if write.epoch > saved.epoch
            and (write.counter is not saved.counter or write.mode == "silent" or not saved.noticed)
            and overlaps(write.region, saved.region)
            and (write.op != "data assignment" or sees_new_data(node, saved, write))
        ]
        if not writes:
            return
        write = writes[0]
        premise = assumption or assumption_of(node.requires)
        name = saved.label or saved.tensor.label
        kept = "result" if saved.role.startswith("result") else "input"
        steps = [Step("saved", node.site, f"{node.op} keeps its {kept} for backward here")]
        if how != "assumed":
            steps.append(Step("needed", site, f"this {how} uses the changed value"))
        steps += list(self.call_steps(write.site))
        self.emit(
            "saved-changed-silently",
            write.site,
            steps,
            premise,
            op=node.op,
            write=write.op,
            target=name,
            written=self.text_of_target(write.site),
            by_step=write.mode == "silent" and "step" in write.op,
            is_parameter=saved.tensor.is_parameter
            or (saved.tensor.is_leaf and saved.tensor.requires_grad is True),
        )

    def graph_already_freed(self, node: Node, loss: Tensor, site: Site, how: str) -> None:
        if is_weak(node) or node.freed is None:
            return
        first = node.freed
        steps = [
            Step("needed", first, "the first backward frees the graph here"),
            Step("saved", node.site, f"{node.op} of the shared part is recorded here"),
        ]
        if first.key == site.key and self.from_earlier_round(node, site):
            place = self.carry_site(loss, site) or site
            if place.key != site.key:
                steps.append(Step("needed", site, "this backward goes through it again in the next round"))
            self.emit(
                "state-carried",
                place,
                steps,
                assumption_of(node.requires),
                op=node.op,
                unsure=place.key in self.stored_somewhere,
                loss=self.text_of_target(site),
            )
            return
        self.emit(
            "backward-twice",
            site,
            steps,
            assumption_of(node.requires),
            op=node.op,
            loss=self.text_of_target(site),
            how=how,
        )

    def from_earlier_round(self, node: Node, site: Site) -> bool:
        """Whether the node was recorded in an earlier round of a loop that the backward runs in."""
        rounds = dict(site.loops)
        return any(run in rounds and rounds[run] > number for run, number in node.site.loops)

    def carry_site(self, loss: Tensor, site: Site) -> Site | None:
        """Where the value that brings the old graph into this round was kept."""
        start = loss.edge()
        todo: list[Edge] = [start] if start is not None else []
        seen: set[Node] = set()
        carried: Tensor | None = None
        old: Node | None = None
        while todo:
            edge = todo.pop()
            if not isinstance(edge, Node) or edge in seen or edge.freed is not None:
                continue
            seen.add(edge)
            for tensor in edge.operands:
                inner = tensor.node
                if inner is None or not self.from_earlier_round(inner, site):
                    continue
                if inner.freed is not None or (
                    not self.from_earlier_round(edge, site)
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
        if carried is not None and carried.kept_at is not None:
            return carried.kept_at
        if old.op.endswith("_") or old.op == "CopySlices":
            return old.site
        return self.outermost(old.site, site)

    def is_freed_in_its_round(self, node: Node) -> bool:
        """Whether a freed part that a node leads to was recorded in the same round: it is what is carried on."""
        return leads_to_freed(node, lambda edge: not self.from_earlier_round(edge, node.site))

    def outermost(self, inner: Site, outer: Site) -> Site:
        """The place in the frame of `outer` through which `inner` was reached."""
        if inner.frame is outer.frame:
            return inner
        for caller in inner.callers():
            if caller.frame is outer.frame:
                return caller
        return inner

    def no_graph(self, loss: Tensor, site: Site, cuts: frozenset[Cut], how: str) -> None:
        """backward of a tensor that has no graph: torch refuses; the cause is the cut, if there is one."""
        text = self.text_of_target(site)
        causes = [cut for cut in cuts if any(True for _ in cut.edges)]
        certain = [cut for cut in causes if not isinstance(cut.source.requires_grad, Maybe)]
        if certain:
            cut = max(certain, key=lambda cut: (cut.tick, cut.serial))
            place = self.place_of_cut(cut, site)
            steps = [
                Step("made", cut.source.site, "the value with a graph is made here"),
                Step("needed", site, f"this {how} finds no graph"),
                *self.call_steps(cut.site),
            ]
            self.emit(
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
            self.emit(
                "backward-without-graph",
                site,
                [Step("made", loss.site, "made here")],
                self.if_untouched(),
                cut="leaf",
                op="",
                loss=text,
                source=loss.label,
            )
        elif not causes and self.known_without_graph(loss):
            self.emit(
                "backward-without-graph",
                site,
                [Step("made", loss.site, "made here, from tensors that need no gradient")],
                self.if_untouched(),
                cut="none",
                op="",
                loss=text,
                source=loss.label,
            )

    def if_untouched(self) -> str:
        """Code that is run by itself starts from a state that other code may have changed."""
        return "" if self.context == "script" else "nothing else sets what it is made of"

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
        """Where to repair a cut: a helper that is meant to run without grad mode is right, calling it for a loss is not."""
        function = cut.site.frame.function
        owner = getattr(function, "name", "")
        if (
            self.word_for(cut) in ("no_grad", "inference")
            and INFERENCE_NAMES.search(owner)
            and cut.site.frame is not site.frame
        ):
            for caller in cut.site.callers():
                if caller.frame is site.frame:
                    return caller
        return cut.site

    def known_without_graph(self, loss: Tensor) -> bool:
        return loss.requires_grad is False and loss.dtype not in ("?",)


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


def is_weak(node: Node) -> bool:
    return isinstance(node.requires, Maybe) and node.requires.weak


def sees_new_data(node: Node, saved: Saved, write: Write) -> bool:
    """Whether `x.data = …` reaches what was kept.

    It gives other memory to the object x.  Views of x keep the old one, and so does a result, of which torch keeps an alias.
    """
    if write.writer is not saved.tensor or saved.role.startswith("result"):
        return False
    if node.op == "matmul" and any(len(operand.shape or ()) != 2 for operand in node.operands):
        return False
    return node.op.lower() in KEEPS_THE_OBJECT
