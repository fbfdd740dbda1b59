"""Optimizer classes of the program: they hold what they are given, and step it."""

from __future__ import annotations

from tests.interp.checking import check

LARS = """
class Lars(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1, decay=0.0):
        super().__init__(params, dict(lr=lr, decay=decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    BEFORE
                    p.add_(p.grad, alpha=-group["lr"])
MORE

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.body(x))

net = Net()
opt = Lars(HELD, lr=0.2)MADE
for _ in range(4):
    CLEAR
    loss = net(torch.randn(5, 3)).pow(2).mean()
    loss.backward()CLAIM
    opt.step()
"""


def program(held: str = "net.parameters()", **parts: str) -> str:
    text = LARS.replace("HELD", held)
    for name, nothing in {
        "BEFORE": "pass",
        "MORE": "",
        "MADE": "",
        "CLEAR": "opt.zero_grad()",
        "CLAIM": "",
    }.items():
        text = text.replace(name, parts.get(name.lower(), nothing))
    return text


def test_own_optimizer_steps_what_it_was_given() -> None:
    check(program())
    check(program(clear="pass", claim="  # GS501"))
    check(program("net.head.parameters()", made="  # GS512"))
    check(program("[{'params': net.head.parameters()}, {'params': net.body.parameters()}]"))


def test_own_optimizer_that_clears_is_left_alone() -> None:
    check(program(clear="pass", before="p.grad = p.grad.clone()"))
    check(program(clear="pass", more="    def first_step(self):\n        self.zero_grad()\n"))


SCHEDULED = """
from torch.optim.lr_scheduler import LRScheduler

class Warmup(LRScheduler):
    def __init__(self, optimizer, rounds):
        self.rounds = rounds
        super().__init__(optimizer)
    def get_lr(self):
        return [rate * min(1, self.last_epoch / self.rounds) for rate in self.base_lrs]
    def step(self, epoch=None):
        super().step(epoch)

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = Warmup(optimizer=optimizer, rounds=3)
for epoch in range(5):
    {clear}
    net(torch.randn(4, 3)).square().mean().backward(){code}
    optimizer.step()
    schedule.step()
"""


def test_a_schedule_of_the_program_steps_no_optimizer() -> None:
    check(SCHEDULED.format(clear="pass", code="  # GS501"))
    check(SCHEDULED.format(clear="optimizer.zero_grad()", code=""))
