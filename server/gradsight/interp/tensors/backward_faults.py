"""What a backward fails on, told with its trail: stale values, freed graphs, and losses without a graph."""

from __future__ import annotations

from gradsight.interp.path_state import assumption_of
from gradsight.interp.tensors.regions import overlaps
from gradsight.interp.tensors.writes import Writer
from gradsight.model.sites import Site
from gradsight.model.tensors import Cut, Maybe, Node, Saved, Tensor, Write
from gradsight.model.trace import FreedNeeded, NoGraph, SavedChanged, SavedOverwritten
from gradsight.ops.traits import having

KEEPS_THE_OBJECT = having("keeps-object") | {"matmul"}
"""Operators that keep an argument as the object it is; others keep a view that they make of it, `linear` of its weight.

`matmul` does so for two matrices.
"""

NEEDS_ONLY_SIGN = having("needs-only-sign")
"""Operators whose backward looks at the sign of what was saved, and at nothing else of it."""


class BackwardFaults(Writer):
    """The faults that a walk through the graph meets: what torch refuses, and what it does not notice."""

    def saved_is_stale(self, node: Node, saved: Saved, site: Site, how: str, assumption: str) -> None:
        """A saved tensor has another version: torch refuses."""
        if not saved.certain or is_weak(node):
            return
        writes = [
            write
            for write in saved.storage.writes
            if write.counter is saved.counter and write.version > saved.version
        ]
        if writes:
            premise = assumption or assumption_of(node.requires)
            if not premise and (saved.tensor.attributes or {}).get("<stand in>"):
                premise = f"`{node.op}` has more than one layer"
            self.path.refuse(SavedOverwritten(node, saved, writes, site, how, premise), premise)

    def saved_is_changed(self, node: Node, saved: Saved, site: Site, how: str, assumption: str) -> None:
        """A saved tensor has other content under the same version: torch does not notice."""
        if not saved.certain or is_weak(node):
            return
        if saved.storage.content == saved.content or is_own_statistics(node, saved):
            return
        keeps_sign = node.op.lower() in NEEDS_ONLY_SIGN
        writes = [
            write
            for write in saved.storage.writes
            if write.epoch > saved.epoch
            and not (keeps_sign and write.change == "scaled")
            and (write.counter is not saved.counter or write.mode == "silent" or not saved.noticed)
            and overlaps(write.region, saved.region)
            and (write.op != "data assignment" or sees_new_data(node, saved, write))
        ]
        if writes:
            premise = assumption or assumption_of(node.requires)
            self.path.tell(SavedChanged(node, saved, writes, site, how, premise))

    def graph_already_freed(self, node: Node, loss: Tensor, site: Site, how: str) -> None:
        if is_weak(node) or node.freed is None:
            return
        premise = assumption_of(node.requires)
        if node.holds == "layers":
            premise = premise or f"what `{node.op}` returns carries the graph of its layers"
        fact = FreedNeeded(node, loss, site, how, premise)
        if node.freed.key == site.key and self.from_earlier_round(node, site):
            # A graph that is carried from round to round is told where it is kept, even if the error is caught.
            self.path.tell(fact)
        else:
            self.path.refuse(fact, premise)

    def from_earlier_round(self, node: Node, site: Site) -> bool:
        """Whether the node was recorded in an earlier round of a loop that the backward runs in."""
        rounds = dict(site.loops)
        return any(run in rounds and rounds[run] > number for run, number in node.site.loops)

    def outermost(self, inner: Site, outer: Site) -> Site:
        """The place in the frame of `outer` through which `inner` was reached."""
        if inner.frame is outer.frame:
            return inner
        for caller in inner.callers():
            if caller.frame is outer.frame:
                return caller
        return inner

    def no_graph(self, loss: Tensor, site: Site, cuts: frozenset[Cut], how: str) -> None:
        """backward of a tensor that has no graph: torch refuses."""
        causes = [cut for cut in cuts if cut.edges]
        is_detached = how == "backward" and loss.requires_grad is False
        if any(
            not isinstance(cut.source.requires_grad, Maybe) or (is_detached and cut.kind == "detach")
            for cut in causes
        ):
            self.path.refuse(NoGraph(loss, site, cuts, how))
        elif not causes and loss.requires_grad is False:
            # Code that is run by itself starts from a state that other code may have changed.
            is_sure = self.path.context == "script" and (is_made_here(loss) or loss.dtype != "?")
            self.path.refuse(NoGraph(loss, site, cuts, how), "" if is_sure else "nothing changed it")


def is_made_here(loss: Tensor) -> bool:
    return loss.leaf_made and loss.node is None


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


def is_own_statistics(node: Node, saved: Saved) -> bool:
    """Whether a norm layer has updated these running statistics itself: in train mode its backward does not use them."""
    if "running_" not in saved.role:
        return False
    first = next((write for write in saved.storage.writes if write.epoch > saved.epoch), None)
    return first is None or (
        first.op == node.op and first.site.node is node.site.node and first.site.loops == node.site.loops
    )
