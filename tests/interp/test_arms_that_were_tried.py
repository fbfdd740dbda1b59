"""What is missing in a training loop, where the text around speaks of resets, steps and optimizers and does none of it."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

FLAGS = """
class Meter:
    def __init__(self):
        self.total = 0
    def update(self, value):
        self.total += value
    def reset(self):
        self.total = 0

def train(args, batches):
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    meter = Meter()
    for i, (x, y) in enumerate(batches):
        {}
        loss = F.mse_loss(net(x), y)
        loss.backward(){}
        optimizer.step()
        meter.update(loss.item())
        if (i + 1) % args.log_interval == 0:
            print(meter.total)
            {}
        if (i + 1) % args.val_interval == 0:
            print(i)
            {}
"""
FOUND = "  # GS501"


@pytest.mark.parametrize(
    ("cleared", "told", "logged", "validated"),
    [
        ("x = x + 1", FOUND, "meter.reset()", "meter.reset()"),
        ("x = x + 1", FOUND, "meter.reset()", "print(x)"),
        ("optimizer.zero_grad()", "", "meter.reset()", "meter.reset()"),
        # These clear every so often: a sum over some steps may be meant.
        ("x = x + 1", "", "net.zero_grad()", "meter.reset()"),
        ("x = x + 1", "", "meter.reset()", "optimizer.zero_grad()"),
        # Nobody knows what they clear.
        ("x = x + 1", "", "args.reset(net)", "meter.reset()"),
    ],
)
def test_an_arm_that_was_tried_and_cleared_nothing_clears_nothing(
    cleared: str, told: str, logged: str, validated: str
) -> None:
    check(FLAGS.format(cleared, told, logged, validated))


SCALED = """
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(10):
    loss = net(torch.randn(8, 4)).mean()
    {}loss.backward(){}
    {}
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("cleared", "told", "written"),
    [
        ("", FOUND, "net[0].weight.grad *= 0.01"),
        ("", FOUND, "net[0].weight.grad.data.mul_(torch.ones(4, 4))"),
        ("net.zero_grad(); ", "", "net[0].weight.grad *= 0.01"),
        ("optimizer.zero_grad(); ", "", "net[0].weight.grad.mul_(0.5)"),
        # The sum of all gradients so far decays: a momentum of the program's own.
        ("", "", "for p in net.parameters(): p.grad *= 0.9"),
        ("", "", "for p in net.parameters(): p.grad.data.mul_(0.9)"),
    ],
)
def test_a_factor_on_some_gradients_clears_none(cleared: str, told: str, written: str) -> None:
    check(SCALED.format(cleared, told, written))


SPOKEN = """
def adjust(optimizer, rate):
    for group in optimizer.param_groups:
        group["lr"] = max(rate, 0.1)

def adjusted(optimizer):
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    return optimizer

def rate_of(epoch, options):
    return options.lr * 0.1 ** (epoch // options.step)

def applied(optimizer):
    optimizer.step()

def handed_on(optimizer, strategy):
    strategy(optimizer)

def train(args, batches):
    net = nn.Linear(4, 1)
    print(f"with {{args.optimizer}}")
    if args.optimizer.lower() == "sgd" or args.optimizer in ("sgd", "SGD"):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    else:
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    {}
    for epoch in range(10):
        for x, y in batches:
            optimizer.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward(){}
"""
IDLE = "  # GS512"


@pytest.mark.parametrize(
    ("spoken", "told"),
    [
        ("print('training with {}'.format(optimizer))", IDLE),
        ("print('training with %s' % optimizer)", IDLE),
        ("print(f'training with {optimizer}')", IDLE),
        ("print(optimizer, rate_of(1, args))", IDLE),
        ("if args.adjusts: adjust(optimizer, 0.1)", IDLE),
        ("if args.decays == 'step': optimizer = adjusted(optimizer)", IDLE),
        # Whoever gets it may step it.
        ("if args.applies: applied(optimizer)", ""),
        ("handed_on(optimizer, args.strategy)", ""),
        ("args.register(optimizer)", ""),
        ("args.steps.append(optimizer.step)", ""),
    ],
)
def test_an_optimizer_that_is_only_spoken_of_is_never_stepped(spoken: str, told: str) -> None:
    check(SPOKEN.format(spoken, told))
