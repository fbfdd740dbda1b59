"""Flags, hooks and gradients that torch refuses at once."""

from __future__ import annotations

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.trace import FlagRefused, GradientRefused

MADE = {
    "integer": "holds integers from here on",
    "result": "computed here, from tensors that require grad",
    "inference": "created here, in inference mode",
    "retain": "created here, without `requires_grad`",
    "hook": "created here, without `requires_grad`",
    "accumulated": "computed here, so it is not a leaf",
}


class RefusedGradients:
    """Tells what does not fit, and where the tensor comes from."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_flag_refused(self, fact: FlagRefused) -> None:
        tensor = fact.tensor
        made = tensor.site if tensor.node is None else tensor.node.site
        steps = [Step("made", made, MADE[fact.reason])] if made.key != fact.site.key else []
        steps += self.path.call_steps(fact.site)
        self.claims.add(
            "requires-grad-refused",
            fact.site,
            steps,
            target=tensor.label,
            reason=fact.reason,
            how=fact.how,
            dtype=tensor.dtype,
        )

    def on_gradient_refused(self, fact: GradientRefused) -> None:
        tensor = fact.tensor
        made = tensor.site if tensor.node is None else tensor.node.site
        self.claims.add(
            "gradient-refused",
            fact.site,
            [Step("made", made, "the tensor is created here"), *self.path.call_steps(fact.site)],
            target=tensor.label,
            reason=fact.reason,
            how=fact.how,
            given=fact.given,
            wanted=fact.wanted,
        )
