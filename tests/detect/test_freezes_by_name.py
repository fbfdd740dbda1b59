"""GS522: a loop over named parameters that was to freeze some, and no name fits."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

MODEL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.attention = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.head = nn.Linear(4, 2)

    def forward(self, ids):
        return self.head(self.norm(self.attention(self.embed(ids))))

net = Net()
{freeze}
optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
optimizer.zero_grad()
net(torch.arange(5)).square().mean().backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    "freeze",
    [
        'for name, p in net.named_parameters():\n    if "attn" in name:  # GS522\n        p.requires_grad = False',
        'for name, p in net.named_parameters():\n    if name.startswith("model.embed"):  # GS522\n        p.requires_grad_(False)',
        (
            'for name, part in net.named_children():\n    if name == "embedding":  # GS522\n'
            "        for p in part.parameters():\n            p.requires_grad = False"
        ),
        (
            'kept = ["model.head.", "norm"]\nfor name, p in net.named_parameters():\n'
            "    if any(one in name for one in kept):  # GS522\n        p.requires_grad = False"
        ),
        (
            'def freeze(attn=True):\n    for name, p in net.named_parameters():\n        if "embed" in name:\n'
            '            p.requires_grad = not attn\n        elif "attn" in name:  # GS522\n            p.requires_grad = not attn\nfreeze()'
        ),
    ],
)
def test_a_freeze_that_no_name_fits_is_reported(freeze: str) -> None:
    check(MODEL.format(freeze=freeze))


@pytest.mark.parametrize(
    "freeze",
    [
        'for name, p in net.named_parameters():\n    if "embed" in name:\n        p.requires_grad = False',
        'for name, p in net.named_parameters():\n    if "attn" in name:\n        p.requires_grad = True',
        'for name, p in net.named_parameters():\n    if "head" not in name:\n        p.requires_grad = False',
        'for name, p in net.named_parameters():\n    if p.dim() > 5 and "embed" in name:\n        p.requires_grad = False',
        'for name, p in net.named_parameters():\n    if "attn" in name:\n        print(name)',
        (
            'kept = ["bn", "norm"]\nfor name, p in net.named_parameters():\n'
            "    if any(one in name for one in kept):\n        p.requires_grad = False"
        ),
        (
            'def freeze(attn=False):\n    for name, p in net.named_parameters():\n        if "embed" in name:\n'
            '            p.requires_grad = False\n        elif "attn" in name:\n            p.requires_grad = not attn\nfreeze()'
        ),
        (
            'for part in ("embed", "attn"):\n    for name, p in net.named_parameters():\n        if part in name:\n'
            "            p.requires_grad = False"
        ),
        (
            "def freeze(model, part):\n    for name, p in model.named_parameters():\n        if part in name:\n"
            '            p.requires_grad = False\nfreeze(net.head, "embed")\nfreeze(net, "embed")'
        ),
    ],
)
def test_a_freeze_that_some_name_fits_or_that_was_not_asked_for_is_not(freeze: str) -> None:
    check(MODEL.format(freeze=freeze))
