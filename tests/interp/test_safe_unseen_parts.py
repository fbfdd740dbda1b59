"""Right programs that look wrong because a part of them is elsewhere, each beside a wrong one where that part is known."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

HANDING_OVER = """
class Policy(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.body = nn.Linear(inputs, 16)
        self.mix = nn.Linear(16, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(F.relu(self.mix(F.relu(self.body(x)))))

def hand_over(local, shared):
    for own, other in zip(local.parameters(), shared.parameters()):
        if other.grad is not None:
            return
        other._grad = own.grad

def work(args, shared, optimizer=None):
    local = Policy(args.inputs)
    if optimizer is None:
        optimizer = torch.optim.Adam(shared.parameters(), lr=args.lr)  # GS512
    while True:
        local.load_state_dict(shared.state_dict())
        loss = local(torch.randn(2, args.inputs)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        hand_over(local, shared)
        optimizer.step()
"""
LAZY = """
from tools import warm_up

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = None

    def forward(self, x):
        x = self.body(x)
        if self.head is None:
            self.head = nn.Linear(x.shape[1], 2)  # GS504
        return self.head(x)

net = Net()
warm_up(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(2, 4)).sum().backward()
    opt.step()
"""
EXTRACTING = """
from torchvision.models import resnet18, ResNet18_Weights

class Encoder(nn.Module):
    def __init__(self, size):
        super().__init__()
        resnet = resnet18(HOW)
        self.body = nn.Sequential(*list(resnet.children())[:-1])
        self.head = nn.Linear(resnet.fc.in_features, size)

    def forward(self, x):
        with torch.no_grad():  # GS204
            x = self.body(x)
        return self.head(x.flatten(1))

model = Encoder(5)
opt = torch.optim.Adam(model.parameters())
for _ in range(3):
    loss = model(torch.randn(2, 3, 32, 32)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_gradients_handed_over_to_a_module_of_unknown_size_raise_no_alarm() -> None:
    check(HANDING_OVER.replace("  # GS512", ""))


def test_gradients_that_nobody_hands_over_are_reported() -> None:
    check(HANDING_OVER.replace("        hand_over(local, shared)\n", ""))


def test_a_layer_that_unknown_code_may_have_made_raises_no_alarm() -> None:
    check(LAZY.replace("  # GS504", ""))


def test_a_layer_made_after_the_optimizer_is_reported() -> None:
    check(LAZY.replace("warm_up(net)\n", ""))


@pytest.mark.parametrize("how", ["pretrained=True", "weights=ResNet18_Weights.DEFAULT"])
def test_a_pretrained_part_applied_without_grad_mode_raises_no_alarm(how: str) -> None:
    check(EXTRACTING.replace("HOW", how).replace("  # GS204", ""))


def test_a_fresh_part_applied_without_grad_mode_is_reported() -> None:
    check(EXTRACTING.replace("HOW", ""))


@pytest.mark.parametrize("outer", ["torch.inference_mode()", "torch.no_grad()"])
def test_inference_mode_switched_off_turns_grad_mode_on(outer: str) -> None:
    check(f"""
        net = nn.Linear(3, 1)
        with {outer}:
            with torch.inference_mode(False):
                net(torch.randn(2, 3)).sum().backward()
    """)


def test_grad_mode_inside_inference_mode_records_nothing() -> None:
    check("""
        net = nn.Linear(3, 1)
        for _ in range(2):
            with torch.inference_mode():  # GS204
                torch.set_grad_enabled(True)
                net(torch.randn(2, 3)).sum().backward()
                torch.set_grad_enabled(False)
    """)


@pytest.mark.parametrize("kind", ["Tensor", "FloatTensor"])
def test_whole_numbers_become_floating_point_numbers(kind: str) -> None:
    check(f"""
        point = nn.Parameter(torch.{kind}([5, 5]))
        (point * 2).sum().backward()
    """)


def test_whole_numbers_that_stay_whole_are_refused() -> None:
    check("""
        point = nn.Parameter(torch.tensor([5, 5]))  # GS307
    """)
