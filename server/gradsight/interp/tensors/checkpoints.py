"""Checkpoints: the function runs, what it saves is thrown away, and backward runs it again."""

from __future__ import annotations

from typing import NamedTuple

from gradsight.interp.tensors.backward_faults import NEEDS_ONLY_SIGN, is_own_statistics, is_weak
from gradsight.interp.tensors.regions import overlaps
from gradsight.interp.tensors.training import Training
from gradsight.model.sites import Site, Syntax
from gradsight.model.tensors import Cut, Edge, Node, Saved, Storage, Tensor, Write, leaves_of
from gradsight.model.trace import CheckpointedWithoutGrad, SavedChanged
from gradsight.model.values import Unknown, Value, tensors_in


class Checkpoints(Training):
    """torch.utils.checkpoint."""

    def checkpoint(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """Runs the function without keeping what it saves; backward runs it again."""
        if not args:
            return Unknown("checkpoint without a function")
        function, inputs = args[0], args[1:]
        # Left out, or None, it still means True: torch only warns that this will change.
        reentrant = kwargs.get("use_reentrant")
        reentrant = True if reentrant is None else reentrant
        site = self.path.site(node)
        flags = [tensor.needs_grad() for value in inputs for tensor in tensors_in(value)]
        named = {
            key: value
            for key, value in kwargs.items()
            if key
            not in (
                "use_reentrant",
                "preserve_rng_state",
                "context_fn",
                "determinism_check",
                "debug",
                "early_stop",
            )
        }
        # The inputs are kept as they are given.  A reentrant one runs the function again on leaves in the place of inputs that
        # require grad, and torch refuses what it writes to them; the versions of others are taken when it is done.
        kept = {
            one: Saved(one, "input", self.autograd.saves_are_certain)
            for one in inputs
            if isinstance(one, Tensor) and (reentrant is False or one.needs_grad() is True)
        }
        # A write inside gives an input another node.
        entered = [edge for value in inputs for one in tensors_in(value) if (edge := one.edge()) is not None]
        began, older = self.path.tick, self.path.numbering.last
        with self.path.inside("checkpoint"):
            result = self.language.call(function, inputs, named, node)
        if reentrant is True and flags and all(flag is False for flag in flags):
            learns = any(tensor.needs_grad() is not False for tensor in tensors_in(result))
            if learns:
                self.path.tell(CheckpointedWithoutGrad(site))
                for tensor in tensors_in(result):
                    tensor.cuts = tensor.cuts | {
                        Cut("checkpoint", "checkpoint", site, tensor, self.path.tick)
                    }
                    tensor.node, tensor.requires_grad = None, False
            return result
        for tensor in tensors_in(result):
            edge = tensor.edge()
            if tensor.node is not None and edge is not None:
                reached = leaves_list(edge)
                # An input that the function makes nothing of gets no gradient.
                given = [inner for inner in entered if isinstance(inner, Node) or inner in reached]
                wrapped = Node("checkpoint", site, given + reached, tensor.requires_grad, self.path.tick)
                wrapped.holds = "always"
                wrapped.reentrant = reentrant is True
                # The inputs are kept to run the function again; where nothing inside was kept, nobody runs it again.
                if reentrant is False and self.path.grad_mode:
                    self.tell_overwritten(edge, given, site)
                if self.path.grad_mode:
                    passed = {one.storage for value in inputs for one in tensors_in(value)}
                    moved = CheckpointRun(site, began, older, passed, reentrant is True)
                    self.tell_moved_again(edge, given, moved)
                if reentrant is True or keeps_inside(edge, given):
                    wrapped.saved = [
                        kept.get(one) or Saved(one, "input", self.autograd.saves_are_certain)
                        for one in inputs
                        if isinstance(one, Tensor)
                    ]
                    # Backward computes with the parameters as they are by then, and compares no version.
                    wrapped.saved += parameters_inside(edge, given)
                if reentrant is True:
                    wrapped.saved += overwritten_inside(edge, given)
                tensor.node = wrapped
        return result

    def tell_overwritten(self, edge: Edge, outside: list[Edge], site: Site) -> None:
        """What the function saves and overwrites before it saves the last time.

        Backward runs the function again up to its last save and takes what was saved then as it is: no version is compared.
        """
        nodes = nodes_inside(edge, outside)
        last = max((node.tick for node in nodes if node.saved), default=0)
        for node in nodes:
            keeps_sign = node.op.lower() in NEEDS_ONLY_SIGN
            for saved in node.saved:
                # In train mode the backward of a norm layer does not use its running statistics, which it updates itself.
                if is_own_statistics(node, saved) or is_weak(node):
                    continue
                writes = [
                    write
                    for write in saved.storage.writes
                    if saved.epoch < write.epoch
                    and write.tick < last
                    and not (keeps_sign and write.change == "scaled")
                    and overlaps(write.region, saved.region)
                ]
                if writes and saved.certain and saved.storage.content != saved.content:
                    self.path.tell(SavedChanged(node, saved, writes, site, "assumed", ""))

    def tell_moved_again(self, edge: Edge, outside: list[Edge], run: CheckpointRun) -> None:
        """What the function saves and what is made of memory that it moves on, which backward moves once more:

        def block(x):
            steps.add_(1)
            return x * steps    # backward saves `steps` again, after another `add_`
        """
        for node in nodes_inside(edge, outside):
            for saved in node.saved:
                if not saved.certain or is_own_statistics(node, saved) or is_weak(node):
                    continue
                for memory, used in memories_behind(saved, node, outside):
                    first = next((write for write in memory.writes if write.tick >= run.began), None)
                    if first is None or memory.serial > run.older or memory in run.passed:
                        continue
                    # The versions of what a reentrant one saves are compared: torch raises.
                    is_refused = run.reentrant and memory is saved.storage and first.tick > used
                    if moves_on(first) and not is_refused:
                        self.path.tell(SavedChanged(node, saved, [first], run.site, "again", ""))


class CheckpointRun(NamedTuple):
    """When the function of a checkpoint began to run, the last number that memory had then, and the memory of its inputs."""

    site: Site
    began: int
    older: int
    passed: set[Storage]
    reentrant: bool


def memories_behind(saved: Saved, node: Node, outside: list[Edge]) -> list[tuple[Storage, int]]:
    """The memories that a saved tensor is made of inside a checkpoint, each with the time when it was read."""
    found = [(saved.storage, node.tick)]
    made = saved.tensor.node
    for inner in nodes_inside(made, outside) if made is not None else ():
        found += [(operand.storage, inner.tick) for operand in inner.operands]
    return found


def moves_on(write: Write) -> bool:
    """Whether a write leaves numbers that depend on those it found: a step of a counter or of an average."""
    is_own = write.mode in ("no_grad", "graph", "silent")
    return is_own and (write.change in ("scaled", "shifted") or write.op == "lerp_")


def nodes_inside(edge: Edge, outside: list[Edge]) -> list[Node]:
    """The nodes between an edge and what was given from outside."""
    todo, seen, found = [edge], set(map(id, outside)), []
    while todo:
        node = todo.pop()
        if id(node) in seen or not isinstance(node, Node):
            continue
        seen.add(id(node))
        found.append(node)
        todo.extend(node.inputs)
    return found


def overwritten_inside(edge: Edge, outside: list[Edge]) -> list[Saved]:
    """What the function saves and overwrites itself: a reentrant backward runs it again, and compares versions as always."""
    return [
        saved
        for node in nodes_inside(edge, outside)
        if not is_weak(node)
        for saved in node.saved
        if saved.certain
        and any(
            write.counter is saved.counter and write.version > saved.version for write in saved.storage.writes
        )
    ]


def parameters_inside(edge: Edge, outside: list[Edge]) -> list[Saved]:
    """The parameters that nodes between an edge and what was given from outside have saved, each once."""
    found: dict[Tensor, Saved] = {}
    for node in nodes_inside(edge, outside):
        for saved in node.saved:
            if saved.certain and saved.tensor.is_parameter and saved.tensor not in found:
                found[saved.tensor] = Saved(saved.tensor, "input", True, noticed=False)
    return list(found.values())


def keeps_inside(edge: Edge, outside: list[Edge]) -> bool:
    """Whether a node between an edge and what was given from outside certainly keeps something."""
    return any(saved.certain for node in nodes_inside(edge, outside) for saved in node.saved)


def leaves_list(edge: Edge) -> list[Edge]:
    """The leaves behind an edge."""
    return list(leaves_of([edge]))
