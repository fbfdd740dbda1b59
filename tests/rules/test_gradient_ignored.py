"""GS708 gradient-ignored: what the rule makes of single events, and of programs that are alike."""

from __future__ import annotations

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source
from gradsight.rules.gradient_ignored import RULE
from tests.rules.single_events import judged

PROGRAM = """
import torch


class Guide(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, direction):
        ctx.save_for_backward(direction)
        return (x * direction).sum()

    @staticmethod
    def backward(ctx, grad):
        (direction,) = ctx.saved_tensors
        {body}


x = torch.ones(3, requires_grad=True)
loss = {loss}
loss.backward()
"""


def codes(body: str, loss: str) -> list[str]:
    text = PROGRAM.replace("{body}", body).replace("{loss}", loss)
    return [
        f.code for f in analyze(Source("program.py", text)).findings if f.severity in ("error", "warning")
    ]


def test_an_event_is_told_in_the_words_of_the_user() -> None:
    finding = judged(RULE, "gradient-ignored", cls="Guide", given="grad")
    assert finding is not None
    assert (finding.code, finding.severity) == ("GS708", "warning")
    assert "`Guide.backward` ignores `grad`" in finding.message


@pytest.mark.parametrize(
    "loss",
    [
        "0.1 * Guide.apply(x, torch.ones(3))",
        "Guide.apply(x, torch.ones(3)) / 4 + x.sum()",
        "torch.stack([Guide.apply(x, torch.ones(3)), x.sum()]).mean()",
        "x.sum() - Guide.apply(x, torch.ones(3))",
    ],
)
def test_a_factor_that_is_lost_is_reported(loss: str) -> None:
    assert codes("return direction, None", loss) == ["GS708"]


@pytest.mark.parametrize(
    ("body", "loss"),
    [
        ("return direction, None", "Guide.apply(x, torch.ones(3))"),
        ("return direction, None", "Guide.apply(x, torch.ones(3)) + x.sum()"),
        ("return direction * grad, None", "0.1 * Guide.apply(x, torch.ones(3))"),
        (
            "found = direction.clone(); found.mul_(grad); return found, None",
            "0.1 * Guide.apply(x, torch.ones(3))",
        ),
        (
            "if grad is None:\n            return None, None\n        return direction * grad, None",
            "2 * Guide.apply(x, torch.ones(3))",
        ),
    ],
)
def test_a_gradient_of_ones_and_one_that_is_used_are_fine(body: str, loss: str) -> None:
    assert codes(body, loss) == []
