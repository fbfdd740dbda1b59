"""Soft weights of which only the place of the largest goes on, in a model that nothing in view trains."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

MODEL = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.value = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x):
        scores = self.score(x)
        weights = scores.softmax(-1)
"""
TOLD = {
    "in one expression": """
        weights = F.one_hot(weights.argmax(-1), weights.shape[-1]).to(weights.dtype)  # GS205
        return weights * self.value(x)
""",
    "by a name": """
        best = torch.argmax(weights.to(x.dtype), dim=-1)  # GS205
        return F.one_hot(best, 3).float() * self.value(x)
""",
}
NOT_TOLD = {
    "the weights go on too": """
        mask = F.one_hot(weights.argmax(-1), 3).to(weights.dtype)
        return (weights * mask).sum(-1, keepdim=True) * self.value(x)
""",
    "straight through": """
        hard = F.one_hot(weights.argmax(-1), 3).float()
        return (hard - weights.detach() + weights) * self.value(x)
""",
    "outside of training": """
        if self.training:
            return scores
        return F.one_hot(weights.argmax(-1), 3).float() * self.value(x)
""",
    "an answer": """
        return F.one_hot(weights.argmax(-1), 3).float()
""",
    "the place is what is wanted": """
        return self.value(x).gather(-1, weights.argmax(-1, keepdim=True))
""",
    "the scores are given back": """
        return scores, F.one_hot(weights.argmax(-1), 3).float() * self.value(x)
""",
}


@pytest.mark.parametrize("name", TOLD)
def test_a_hard_choice_that_nothing_teaches_is_told(name: str) -> None:
    check(MODEL + TOLD[name].lstrip("\n"))


@pytest.mark.parametrize("name", NOT_TOLD)
def test_a_choice_that_is_meant_is_not_told(name: str) -> None:
    check(MODEL + NOT_TOLD[name].lstrip("\n"))
