"""Layers in a row of a library's network are one operator, unless the program looks between them."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

HEAD = """
import torchvision

model = torchvision.models.vgg11()
x = torch.randn(2, 3, 32, 32)
"""


def test_weight_in_a_row_is_saved_and_a_bias_is_not() -> None:
    program = """
loss = model(x).sum()
with torch.no_grad():
    model.features[6].NAME.mul_(2)MARK
loss.backward()
"""
    check(HEAD + program.replace("NAME", "weight").replace("MARK", "  # GS106"))
    check(HEAD + program.replace("NAME", "bias").replace("MARK", ""))


def test_input_and_output_of_a_row_are_those_of_its_ends() -> None:
    program = "x.requires_grad_()\ngiven = x * 2\nout = model.features(given)\nWRITE\nout.sum().backward()\n"
    check(HEAD + program.replace("WRITE", "given += 1  # GS101"))
    check(HEAD + program.replace("WRITE", "out += 1"))
    cut = HEAD + "out = model.features[:13](x)\nWRITE\nout.sum().backward()\n"
    check(cut.replace("WRITE", "out += 1  # GS101"))
    check(cut.replace("WRITE", "out = out + 1"))


def test_hook_on_a_layer_in_a_row_is_run() -> None:
    program = """
seen = []
model.features[7].register_forward_hook(lambda module, given, out: seen.append(out))
model(x)
value = torch.sigmoid(seen[0])
value += 1MARK
value.sum().backward()
"""
    check(HEAD + program.replace("MARK", "  # GS101"))
    check(HEAD + program.replace("value += 1MARK", "value = value + 1"))


@pytest.mark.parametrize("place", [0, 6, 20])
def test_layer_of_the_users_own_in_a_row_is_executed(place: int) -> None:
    program = f"""
class Own(nn.Module):
    def forward(self, x):
        x = torch.sigmoid(x)
        x *= 2MARK
        return x

model.features[{place}] = Own()
model(x).sum().backward()
"""
    if place:
        check(HEAD + program.replace("MARK", "  # GS101"))
    check(HEAD + program.replace("x *= 2MARK", "x = x * 2"))


def test_frozen_row_passes_the_gradient_on() -> None:
    program = """
for parameter in model.parameters():
    parameter.requires_grad = False
image = nn.Parameter(torch.randn(2, 3, 32, 32))
opt = torch.optim.Adam([image])
for step in range(10):
    CLEAR
    model(image).sum().backward()MARK
    opt.step()
"""
    check(HEAD + program.replace("CLEAR", "opt.zero_grad()").replace("MARK", ""))
    check(HEAD + program.replace("CLEAR", "pass").replace("MARK", "  # GS501"))
