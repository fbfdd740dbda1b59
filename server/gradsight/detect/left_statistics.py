"""Moving averages of a network that leave the statistics of its norm layers behind.

`for slow, fast in zip(ema.parameters(), model.parameters()): slow.lerp_(fast, 0.01)` moves weights only.  Batch norm computes with
`running_mean` and `running_var` in eval mode, which are buffers: those of the copy are as they were when it was made.
"""

from __future__ import annotations

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Applied, Combined, DataAssigned, Used, Wrote

MIXING = {"lerp", "add", "sub", "mul"}
MOST_MIXTURES = 1000
AVERAGING = {"add_", "lerp_", "copy_", "sub_", "addcmul_"}


class LeftStatistics:
    """Which parameters follow which, and whose norm layers computed with what."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.followed: dict[Tensor, tuple[Tensor, Site]] = {}
        """A parameter that is moved by hand towards another one, with that one and the place."""
        self.mixtures: dict[Tensor, list[Tensor]] = {}
        """What was computed from parameters, by the operators `+`, `-` and `*` or by `lerp`, and those."""
        self.means: dict[Tensor, Tensor] = {}
        """The running means of norm layers, by their weights."""
        self.read: dict[Tensor, Site] = {}
        """Weights of followers that computed with statistics which nobody had written, and where."""
        self.in_states: set[Tensor] = set()
        """Followers that were written as items of a state: its buffers come behind all parameters."""

    def on_combined(self, fact: Combined) -> None:
        self.mix(fact.result, (fact.left, fact.right))

    def on_applied(self, fact: Applied) -> None:
        if fact.name.rpartition(".")[2] in MIXING:
            self.mix(fact.result, (fact.first, *fact.arguments))

    def mix(self, result: object, operands: tuple[object, ...]) -> None:
        if type(result) is not Tensor or result.requires_grad is True or len(self.mixtures) > MOST_MIXTURES:
            return
        tensors = [operand for operand in operands if type(operand) is Tensor]
        parameters = [origin for tensor in tensors for origin in self.parameters_in(tensor)]
        if parameters:
            self.mixtures[result] = parameters

    def on_wrote(self, fact: Wrote) -> None:
        if fact.op in AVERAGING and fact.tensor.is_parameter:
            self.follow(fact.tensor, fact.others, fact.site)
        elif fact.op in AVERAGING and fact.tensor.source is not None and fact.tensor.source.is_parameter:
            self.follow(fact.tensor.source, fact.others, fact.site)
            if fact.tensor.snapshot == "state_dict":
                self.in_states.add(fact.tensor.source)

    def on_data_assigned(self, fact: DataAssigned) -> None:
        if fact.tensor.is_parameter and isinstance(fact.value, Tensor):
            self.follow(fact.tensor, [fact.value], fact.site)

    def follow(self, slow: Tensor, others: list[Tensor], site: Site) -> None:
        for origin in (origin for fast in others for origin in self.parameters_in(fast)):
            if origin is not slow:
                self.followed.setdefault(slow, (origin, site))

    def parameters_in(self, tensor: Tensor) -> list[Tensor]:
        """The parameters that a tensor is, shows, or is mixed of."""
        if tensor in self.mixtures:
            return self.mixtures[tensor]
        origin = tensor if tensor.is_parameter else tensor.source
        if origin is not None and origin.is_parameter:
            return [origin]
        # A clone holds the same numbers; what concerns this detector are the weights of norm layers that were used.
        return [weight for weight in self.means if weight.storage.content == tensor.storage.content][:1]

    def on_used(self, fact: Used) -> None:
        mean, weight = fact.arguments.get("self.running_mean"), fact.arguments.get("self.weight")
        if isinstance(mean, Tensor) and isinstance(weight, Tensor):
            self.means[weight] = mean
            if weight in self.followed and not mean.storage.writes:
                # In train mode the layer is about to write them.
                self.read.setdefault(weight, self.path.site(fact.node))

    def finish(self) -> None:
        for slow, read in self.read.items():
            if slow in self.in_states and self.path.is_abridged:
                # The loop over the state was left before it came to the buffers.
                continue
            fast, site = self.followed[slow]
            origin = self.means.get(fast)
            if origin is not None and origin.storage.writes and not self.means[slow].storage.writes:
                steps = [Step("read", read, "computed here with the statistics of a fresh layer")]
                self.claims.add("statistics-left", site, steps)
