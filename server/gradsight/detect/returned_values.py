"""Cuts and silent writes on the way to what a forward returns, told without a training loop in view.

Only what is hardly ever meant counts: a copy by `torch.tensor`, a way through NumPy or plain numbers, soft weights of which
only the largest is taken, a write under no_grad or through `.data` to what is returned.  A plain `detach` or `no_grad` in a
forward says itself what it is for.
A cut counts if what lies behind it (a parameter, an argument) reaches the returned value on no other way.  In any case counts
`torch.tensor(t)`, of which torch itself warns, and a loss that is returned as `torch.tensor(loss.item())`.
"""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_flow import nodes_behind
from gradsight.detect.hard_choices import is_hard_choice
from gradsight.detect.mode_cuts import steps_of_mode
from gradsight.detect.path import Path
from gradsight.detect.recorded_writes import RecordedWrites, way_of
from gradsight.model.events import Step
from gradsight.model.name_hints import suggests
from gradsight.model.tensors import Cut, Edge, Maybe, Node, Tensor
from gradsight.model.trace import ForwardReturned

ASSUMED = "backward is called on the result"
HARDLY_MEANT = {"copy", "numpy", "number"}
SIZES = {"tolist", "int"}
"""What sizes and places are made of; a value is taken out as one number."""


class ReturnedValues:
    """Looks at what a forward that is executed by itself returns."""

    def __init__(self, path: Path, claims: Claims, writes: RecordedWrites) -> None:
        self.path = path
        self.claims = claims
        self.writes = writes

    def on_forward_returned(self, fact: ForwardReturned) -> None:
        """What keeps gradients from the parameters behind the result of a forward."""
        returned, name = fact.tensors, fact.name
        if not returned or suggests("preparation of weights", name):
            return
        self.check_writes(returned)
        if any(suggests(hint, name) for hint in ("way out of training", "target", "weight of a loss")):
            return
        cuts = {
            cut
            for tensor in returned
            for cut in tensor.cuts
            if cut.kind in HARDLY_MEANT or (tensor.node is not None and is_hard_choice(cut))
        }
        if not cuts:
            return
        reached = ends_behind([edge for tensor in returned if (edge := tensor.edge()) is not None])
        of_losses = self.cuts_of_losses(returned)
        for cut in sorted(cuts, key=lambda cut: (cut.tick, cut.serial)):
            behind = ends_behind(list(cut.edges))
            lost = behind if is_needless_copy(cut) or cut in of_losses else behind - reached
            if not lost or is_bare_argument(cut) or is_own_value(cut) or cut.op in SIZES:
                continue
            parameter = next((end for end in lost if isinstance(end, Tensor)), None)
            if parameter is None and cut.op.startswith("math."):
                # `math.exp(-1 / tau)` of arguments alone rather shows that they are numbers.
                continue
            self.claims.add(
                "path-cut",
                cut.site,
                [
                    Step("made", cut.source.site, "still in the graph here"),
                    *steps_of_mode(cut),
                    *self.path.call_steps(cut.site),
                ],
                ASSUMED,
                cut=cut.kind,
                op=cut.op,
                source=cut.source.label,
                hidden=False,
                parameter=parameter.label if parameter is not None else "",
            )
            return

    def cuts_of_losses(self, returned: list[Tensor]) -> set[Cut]:
        """Where losses became numbers, if nobody has differentiated them and they are not returned with their graphs as well."""
        if self.path.backwards:
            return set()
        bare = [tensor for tensor in returned if tensor.edge() is None]
        found = {cut for tensor in bare for cut in tensor.cuts}
        return {cut for cut in found if suggests("loss", cut.source.label) and cut.source not in returned}

    def check_writes(self, returned: list[Tensor]) -> None:
        """Values that were changed behind autograd's back and are returned as they are."""
        for target, write in self.writes.unrecorded:
            if write in self.writes.by_alias:
                continue
            for tensor in returned:
                if tensor.storage is not target.storage or tensor.node is None:
                    continue
                if tensor is target or tensor.node is target.node or tensor.base is not None:
                    made = target.node.site if target.node is not None else target.site
                    self.claims.add(
                        "graph-written-without-grad",
                        write.site,
                        [Step("made", made, "recorded in the graph here"), *self.path.call_steps(write.site)],
                        ASSUMED,
                        op=write.op,
                        target=self.path.text_of_target(write.site),
                        through=way_of(write),
                    )


def is_needless_copy(cut: Cut) -> bool:
    """`torch.tensor(t)` of one tensor whose graph is seen, and is not only what unknown code may have passed on."""
    call = cut.site.node
    if cut.kind != "copy" or not isinstance(call, ast.Call) or not call.args:
        return False
    if isinstance(call.args[0], (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)):
        return False
    return not any(node.premise for node in nodes_behind(cut.source.edge()))


def ends_behind(edges: list[Edge]) -> set[Edge]:
    """The parameters and the arguments that a gradient arriving at these edges would reach."""
    ends: set[Edge] = set()
    seen: set[Node] = set()
    todo = list(edges)
    while todo:
        edge = todo.pop()
        if isinstance(edge, Tensor):
            if edge.requires_grad is True:
                ends.add(edge)
        elif edge not in seen:
            seen.add(edge)
            if edge.op == "argument" and isinstance(edge.requires, Maybe):
                ends.add(edge)
            todo.extend(edge.inputs)
    return ends


def is_bare_argument(cut: Cut) -> bool:
    """`torch.tensor(sizes)` of an argument rather shows that the argument is no tensor."""
    return cut.source.node is not None and cut.source.node.op == "argument"


def is_own_value(cut: Cut) -> bool:
    """Whether the value of a parameter itself was taken: to copy weights, not to compute with them."""
    return bool(cut.edges) and all(isinstance(edge, Tensor) and edge.is_parameter for edge in cut.edges)
