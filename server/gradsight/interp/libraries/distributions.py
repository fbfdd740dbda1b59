"""torch.distributions: samples carry no gradient, reparameterised samples and log-probabilities do."""

from __future__ import annotations

from gradsight.interp.libraries.process_groups import ProcessGroups
from gradsight.model.library_objects import Distribution
from gradsight.model.sites import Syntax
from gradsight.model.tensors import IGNORANT, Cut, Node, Shape, Tensor, any_requires_grad
from gradsight.model.values import Bound, Unknown, Value, tensors_in

LOCATED = ("Normal", "Laplace", "Cauchy", "Gumbel")
"""Families whose entropy does not depend on where they lie."""


class Distributions(ProcessGroups):
    """Objects that hold parameter tensors and make tensors from them."""

    def is_distribution_path(self, path: str) -> bool:
        return path.startswith("torch.distributions.")

    def make_distribution(
        self, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        if name == "kl_divergence":
            known = [arg for arg in args if isinstance(arg, Distribution)]
            if len(known) < len(args):
                return self.nn.unknown_result("divergence of unknown distributions", args, kwargs, node)
            held = [tensor for arg in known for tensor in arg.held]
            return self.from_parameters("kl_divergence", held, None, node)
        given = [self.nn.assume_input(value) for value in [*args, *kwargs.values()]]
        held = [tensor for value in given for tensor in tensors_in(value)]
        for value in given:
            if isinstance(value, Distribution):
                held += value.held
            elif isinstance(value, Unknown) and not value.hint:
                held.append(Tensor(self.path.site(node), requires_grad=IGNORANT))
        distribution = Distribution(name, self.path.site(node), held, dict(kwargs))
        spread = kwargs.get("scale", args[1] if len(args) > 1 else None)
        distribution.spread = tensors_in(self.nn.assume_input(spread))
        first = held[0] if held else None
        shape = first.shape if first is not None else None
        if name in ("Categorical",) and shape:
            shape = shape[:-1]
        distribution.shape = shape
        return distribution

    def from_parameters(
        self, op: str, held: list[Tensor], shape: Shape, node: Syntax, extra: list[Tensor] | None = None
    ) -> Tensor:
        """A tensor computed from the parameters; the composite keeps tensors of its own."""
        site = self.path.site(node)
        self.path.tick += 1
        sources = [*held, *(extra or [])]
        flag = any_requires_grad(
            [tensor.needs_grad() for tensor in sources if tensor.dtype not in ("int", "bool")]
        )
        recording = flag if self.path.grad_mode and not self.path.inference else False
        result = Tensor(site, requires_grad=recording, shape=shape)
        for tensor in sources:
            result.cuts = result.cuts | tensor.cuts
        if recording is not False:
            edges = [edge for tensor in sources if (edge := tensor.edge()) is not None]
            result.node = Node(op, site, edges, recording, self.path.tick)
            result.node.holds = "always"
            result.node.open = any(tensor.requires_grad is IGNORANT for tensor in sources)
        elif flag is not False:
            result.cuts = result.cuts | self.autograd.mode_cut(op, [("", tensor) for tensor in sources], site)
        return result

    def distribution_method(
        self, receiver: Distribution, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value:
        held = receiver.held
        shape = receiver.shape
        if name in ("sample", "sample_n"):
            site = self.path.site(node)
            result = Tensor(
                site,
                dtype="int" if receiver.path == "Categorical" else "float",
                shape=shape if not args else None,
            )
            for tensor in held:
                if tensor.needs_grad() is not False:
                    result.cuts = result.cuts | {Cut("sample", "sample", site, tensor, self.path.tick)}
            return result
        if name == "rsample":
            return self.from_parameters("rsample", held, shape if not args else None, node)
        if name in ("log_prob", "cdf", "icdf"):
            extra = [tensor for arg in args for tensor in tensors_in(self.nn.assume_input(arg))]
            if extra and extra[0].shape is not None and shape is None:
                shape = None
            return self.from_parameters(name, held, shape, node, extra)
        if name == "entropy" and receiver.path in LOCATED and receiver.spread:
            return self.from_parameters(name, receiver.spread, shape, node)
        if name in ("entropy", "perplexity"):
            return self.from_parameters(name, held, shape, node)
        if name in ("expand", "to_event"):
            return receiver
        return Unknown(f"{name} of a distribution")

    def distribution_attribute(self, owner: Distribution, name: str, node: Syntax) -> Value:
        if name in ("probs", "logits", "mean", "loc", "scale", "variance", "stddev", "concentration"):
            parameter = owner.named.get(name)
            if isinstance(parameter, Tensor):
                return parameter
            return self.from_parameters(name, owner.held, None, node)
        return Bound(owner, name)
