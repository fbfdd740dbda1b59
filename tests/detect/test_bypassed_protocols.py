"""Steps that the protocol of torch asks for and a program goes past: scalers, optimizers of every iteration, transforms."""

from __future__ import annotations

from tests.detect.test_reported_families import check

SCALED = """
def train(model, loader, optimizer, criterion, scaler, use_amp):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        {backward}
        {unscale}
        scaler.step(optimizer)
        scaler.update()
"""


def scaled(backward: str, unscale: str = "pass") -> str:
    return SCALED.replace("{backward}", backward).replace("{unscale}", unscale)


def test_a_scaler_that_is_given_gradients_which_were_not_scaled() -> None:
    check(scaled("loss.backward()"), ("GS511", "scaler.step"))
    check(scaled("loss.backward()", "scaler.unscale_(optimizer)"), ("GS511", "scaler.unscale_"))


def test_scaled_somewhere_is_scaled() -> None:
    check(scaled("scaler.scale(loss).backward()"))
    check(scaled("scaler.scale(loss / 4).backward()", "scaler.unscale_(optimizer)"))
    check(scaled("(scaler.scale(loss) if use_amp else loss).backward()"))
    check(scaled("scaler.scale(loss).backward() if use_amp else loss.backward()"))


REMADE = """
def make(net):
    return torch.optim.Adam(net.parameters(), lr=0.01)


net = nn.Linear(4, 1)
{before}
for step in range(10):
    x = torch.randn(8, 4)
    {inside}
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()
"""


def test_an_optimizer_that_a_function_makes_for_every_iteration() -> None:
    check(
        REMADE.replace("{before}", "").replace("{inside}", "optimizer = make(net)"),
        ("GS521", "optimizer = make"),
    )
    check(REMADE.replace("{before}", "optimizer = make(net)").replace("{inside}", "pass"))
    check(
        REMADE.replace("{before}", "import copy").replace(
            "{inside}", "net = copy.deepcopy(net); optimizer = make(net)"
        )
    )


TRANSFORMED = """
from torch.func import functional_call, grad, vmap

net = nn.Linear(4, 1)


def loss_of(parameters, x, y):
    prediction = functional_call(net, parameters, (x.unsqueeze(0),))
    return {value}


parameters = {name: one.detach() for name, one in net.named_parameters()}
gradients = vmap(grad(loss_of), in_dims=(None, 0, 0))(parameters, torch.randn(8, 4), torch.randn(8))
"""


def test_a_function_that_leaves_the_graph_has_a_gradient_of_zero() -> None:
    check(
        TRANSFORMED.replace("{value}", "(prediction.detach().squeeze() - y).square().mean()"),
        ("GS407", "return (prediction.detach()"),
    )
    check(
        TRANSFORMED.replace(
            "{value}", "(prediction.squeeze() - prediction.detach().mean() - y).square().mean()"
        )
    )


PICKED = """
import argparse


class Small(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body, self.head = nn.Linear(4, width), nn.Linear(width, 2)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


def other(width):
    return None


parser = argparse.ArgumentParser()
parser.add_argument("--model", default="Small")
args = parser.parse_args()
model = globals()[args.model]()
optimizer = torch.optim.SGD(model.{part}parameters(), lr=0.1)
for x in torch.randn(3, 5, 4):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
"""


def test_a_model_that_an_option_names_is_the_one_of_its_default() -> None:
    check(PICKED.replace("{part}", "head."), ("GS512", "optimizer ="))
    check(PICKED.replace("{part}", ""))
