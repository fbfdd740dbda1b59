"""Plain tensors under the names of parameters: where torch refuses them, and where the name is free."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

REFUSED = [
    "layer.weight = torch.zeros(3, 3)  # GS607",
    "layer.weight = layer.weight * 2  # GS607",
    "with torch.no_grad():\n    layer.weight = layer.weight / 2  # GS607",
    "layer.bias = layer.bias.detach()  # GS607",
    "layer.bias = layer.bias.data  # GS607",
    "fresh = torch.tensor([1.0, 2.0, 3.0])\nlayer.bias = fresh  # GS607",
    "setattr(layer, 'weight', torch.zeros(3, 3))  # GS607",
]
ALLOWED = [
    "layer.weight = nn.Parameter(torch.zeros(3, 3))",
    "layer.weight = None",
    "layer.weight.data = torch.zeros(3, 3)",
    "layer.weight = layer.weight.to('cpu')",
    "layer.weight = layer.weight.float()",
    "layer.weight = layer.weight.contiguous()",
    "layer.weight = nn.init.zeros_(layer.weight)",
    "layer.weight = nn.Linear(3, 3).weight",
    "del layer.weight\nlayer.weight = torch.zeros(3, 3)",
    "delattr(layer, 'weight')\nlayer.weight = torch.zeros(3, 3)",
    "layer.__delattr__('weight')\nlayer.weight = torch.zeros(3, 3)",
    "del layer._parameters['weight']\nlayer.weight = torch.zeros(3, 3)",
    "nn.utils.parametrize.register_parametrization(layer, 'weight', nn.Identity())\nlayer.weight = torch.zeros(3, 3)",
    "nn.utils.parametrizations.weight_norm(layer)\nlayer.weight = torch.zeros(3, 3)",
    "nn.utils.prune.l1_unstructured(layer, 'weight', 0.5)\nlayer.weight = torch.zeros(3, 3)",
    "layer = nn.utils.spectral_norm(layer)\nlayer.weight = torch.zeros(3, 3)",
    "layer.scale = torch.zeros(3, 3)",
    "try:\n    layer.weight = torch.zeros(3, 3)\nexcept TypeError:\n    pass",
]


@pytest.mark.parametrize("lines", REFUSED)
def test_a_plain_tensor_does_not_take_the_place_of_a_parameter(lines: str) -> None:
    check(f"layer = nn.Linear(3, 3)\n{lines}\n")


@pytest.mark.parametrize("lines", ALLOWED)
def test_what_torch_allows_is_left_alone(lines: str) -> None:
    check(f"layer = nn.Linear(3, 3)\n{lines}\n")


def test_a_forward_that_overwrites_its_parameter_is_told_without_a_script() -> None:
    net = """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.layer = nn.Parameter(torch.ones(3)), nn.Linear(3, 3)
    def forward(self, x):
        {}
        return self.layer(x) * self.scale
"""
    check(net.format("self.scale = self.scale * 2  # GS607"))
    check(net.format("self.layer.weight = self.layer.weight.clamp(min=0)  # GS607"))
    check(net.format("scale = self.scale * 2"))
    check(net.format("self.scale = nn.Parameter(self.scale.detach() * 2)"))


HYPER = """
class Made(nn.Module):
    def __init__(self, other=None):
        super().__init__()
        self.layer, self.make = nn.Linear(3, 3), nn.Linear(2, 9)
        del self.layer.weight
    def forward(self, z, x):
        self.layer.weight = {}
        return self.layer(x)
net = Made()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for z, x in zip(torch.randn(4, 2), torch.randn(4, 5, 3)):
    optimizer.zero_grad()
    net(z, x).sum().backward()
    optimizer.step()
"""


def test_a_layer_computes_with_what_stands_in_the_place_of_its_weight() -> None:
    check(HYPER.format("self.make(z).view(3, 3)"))
    unseen = HYPER.replace(", self.make = nn.Linear(3, 3), nn.Linear(2, 9)", " = nn.Linear(3, 3)")
    check("from elsewhere import made\n" + unseen.format("made(z)"))
    check(
        """
layer = nn.Linear(2, 1, bias=False)
base = layer.weight
del layer.weight
layer.weight = base.detach() * 2  # GS203
layer(torch.ones(3, 2)).sum().backward()
"""
    )
