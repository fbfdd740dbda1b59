"""What no optimizer moves: beside other findings, beside frozen statistics, by an optimizer for others, and without a step."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

BESIDE = """
from elsewhere import batches
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.blocks = {blocks}
    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return x
net, head = Net(), nn.Linear(4, 2)
opt = torch.optim.Adam({held}){said}
for x, y in batches:
    opt.zero_grad()
    F.cross_entropy(head(net(x)), y).backward()
    opt.step()
"""


def test_a_head_that_is_left_out_is_reported_beside_layers_that_are_not_registered() -> None:
    hidden = "[nn.Linear(4, 4), nn.Linear(4, 4)]  # GS601"
    check(BESIDE.format(blocks=hidden, held="net.parameters()", said="  # GS512"))
    check(BESIDE.format(blocks=hidden, held="[*net.parameters(), *head.parameters()]", said=""))


PARTLY = """
from elsewhere import batches
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        self.head = nn.Linear(4, 2)
    def forward(self, x):
        return self.head(self.trunk(x))
net = Net()
opt = torch.optim.Adam(net.head.parameters()){said}
for epoch in range(5):
    net.train()
    {then}
    for x, y in batches:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
"""


def test_statistics_that_are_kept_do_not_tell_that_a_trunk_is() -> None:
    check(PARTLY.format(then="net.trunk[1].eval()", said="  # GS512"))


def test_a_trunk_in_eval_mode_is_used_as_it_is() -> None:
    check(PARTLY.format(then="net.trunk.eval()", said=""))


FOR_OTHERS = """
class Learner:
    def __init__(self, agent, args):
        self.agent, self.critic = agent, nn.Linear(4, 1)
        self.agent_opt = torch.optim.RMSprop({held}.parameters(), lr=args.lr){said}
        self.critic_opt = torch.optim.RMSprop(self.critic.parameters(), lr=args.lr)

    def learn(self, x, y):
        self.agent.train()
        self.critic_opt.zero_grad()
        value = self.critic(x)
        F.mse_loss(value, y).backward()
        self.critic_opt.step()
        advantage = (y - value).detach()
        loss = -(advantage * self.agent(x)).mean()
        self.agent_opt.zero_grad()
        loss.backward()
        self.agent_opt.step()
"""


def test_an_optimizer_for_an_unknown_agent_that_got_the_critic_is_reported_and_no_cut() -> None:
    check(FOR_OTHERS.format(held="self.critic", said="  # GS512"))
    check(FOR_OTHERS.format(held="agent", said=""))


NO_STEP = """
def fit(model, loader, optimizer, log):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward(){said}
        {then}
"""


def test_a_loop_that_clears_and_never_steps_is_reported() -> None:
    check(NO_STEP.format(said="  # GS512", then="log(loss.item())"))


def test_that_a_given_optimizer_never_steps_is_a_remark_where_nothing_says_that_training_is_meant() -> None:
    program = NO_STEP.replace("    model.train()\n", "")
    check(program.format(said="  # info GS512", then="log(loss.item())"))
    check(program.format(said="  # GS512", then="nn.utils.clip_grad_norm_(model.parameters(), 1.0)"))


@pytest.mark.parametrize(("then", "said"), [("pass", "  # info GS512"), ("optimizer.step()", "")])
def test_a_loop_that_accumulates_and_never_steps_is_reported(then: str, said: str) -> None:
    check(f"""
        def fit(model, loader, optimizer):
            for batch in loader:
                for x, y in batch.chunks:
                    loss = F.cross_entropy(model(x), y) / 4
                    loss.backward(){said}
                {then}
                optimizer.zero_grad()
    """)


@pytest.mark.parametrize(
    "then",
    [
        "optimizer.step()",
        "log(optimizer)",
        "log([p.grad.norm() for p in model.parameters()])",
        "log.step(optimizer)",
    ],
)
def test_a_loop_in_which_somebody_steps_or_reads_the_gradients_is_not(then: str) -> None:
    check(NO_STEP.format(said="", then=then))


SOLVER = """
from torch import optim

class Solver:
    def __init__(self, config, loader):
        self.net, self.loader = nn.Linear(3, 2), loader
        self.optim = optim.Adam(self.net.parameters(), lr=config.optim.lr)
        self.schedule = optim.lr_scheduler.StepLR(self.optim, 3)

    def train(self):
        for x, y in self.loader:
            self.optim.zero_grad()
            F.cross_entropy(self.net(x), y).backward(){said}
            nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            print(sum(p.grad.norm() for p in self.net.parameters()))
            {then}
            self.schedule.step()
"""


@pytest.mark.parametrize(("then", "said"), [("pass", "  # GS512"), ("self.optim.step()", "")])
def test_the_name_of_a_module_or_of_settings_is_no_use_of_an_optimizer(then: str, said: str) -> None:
    check(SOLVER.format(then=then, said=said))


PICKED = """
import schedules

class Trainer:
    def __init__(self, model, config, loader):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
        self.schedule = getattr(schedules, config["kind"])(self.optimizer, len(loader))

    def train(self):
        for x, y in self.loader:
            {clear}
            F.cross_entropy(self.model(x), y).backward(){said}
            self.optimizer.step()
"""


def test_a_schedule_that_a_name_picks_leaves_the_gradients() -> None:
    check(PICKED.format(clear="pass", said="  # GS501"))
    check(PICKED.format(clear="self.optimizer.zero_grad()", said=""))
    check(PICKED.replace("schedules", "helpers").format(clear="pass", said=""))


MANY = """
        body = nn.Sequential(*[nn.Linear(4, 4) for _ in range(50)])
        head = nn.Linear(4, 4)
        model = nn.Sequential(body, head)
        opt = torch.optim.SGD({given}, lr=0.1){claim}
        for _ in range(5):
            opt.zero_grad()
            F.mse_loss(model(torch.randn(3, 4)), torch.randn(3, 4)).backward()
            opt.step()
"""


@pytest.mark.parametrize(
    "given",
    [
        "list(set(model.parameters()).difference(set(head.parameters())))",
        "list(set(model.parameters()).difference(head.parameters()))",
        "set(model.parameters()) - set(head.parameters())",
        "set(body.parameters()).union(body[0].parameters())",
    ],
)
def test_what_the_difference_of_sets_leaves_out_is_reported(given: str) -> None:
    check(MANY.format(given=given, claim="  # GS512"))


@pytest.mark.parametrize(
    "given",
    [
        "set(body.parameters()) | set(head.parameters())",
        "set(body.parameters()).union(head.parameters())",
        "set(p for p in body.parameters()).union(p for p in head.parameters())",
        "set(body.parameters()).symmetric_difference(head.parameters())",
        "list(set(model.parameters()).difference(set(head.parameters()))) + list(head.parameters())",
    ],
)
def test_what_the_union_of_sets_has_is_silent(given: str) -> None:
    check(MANY.format(given=given, claim=""))


FACTORY = """
def make_optimizer(parameters, name):
    if name == "sgd":
        return torch.optim.SGD(filter(lambda p: p.requires_grad, parameters), lr=0.1)
    return torch.optim.Adam(parameters)

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x)

body, first, second = nn.Linear(4, 4), Head(), Head()
opt_b = make_optimizer(body.parameters(), "sgd")
opt_h = make_optimizer({given})
for x in torch.randn(5, 8, 4):
    y = torch.randint(0, 2, (8,))
    h = body(x)
    loss = F.cross_entropy(first(h), y) + F.cross_entropy(second(h), y)
    opt_b.zero_grad()
    opt_h.zero_grad()
    loss.backward()
    opt_b.step()
    opt_h.step()
"""


def test_who_hands_parameters_to_a_function_that_makes_an_optimizer_chooses_them() -> None:
    check(FACTORY.format(given='first.parameters(), "sgd")  # GS512').replace("# GS512)", "# GS512"))
    check(FACTORY.format(given='[*first.parameters(), *second.parameters()], "sgd"'))


LEARNER = """
class Learner:
    def __init__(self, network, settings):
        self.network, self.settings = network, settings
        self.optimizer = torch.optim.Adam(self.network.parameters())
        if settings.tunes:
            self.log_alpha = torch.zeros(1, requires_grad=True)
            self.alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=0.1){code}
    def learn(self, states, number):
        values = self.network(states)
        alpha = self.settings.alpha
        if self.settings.tunes:
            loss = -(self.log_alpha * values.detach()).mean()
            self.alpha_optimizer.zero_grad()
            loss.backward()
            {step}
            alpha = self.log_alpha.exp().detach()
        if number % self.settings.often == 0:
            self.optimizer.zero_grad()
            (alpha * values.mean()).backward()
            self.optimizer.step()
        self.network.zero_grad()
        self.network(states).square().mean().backward()
        self.optimizer.step()
"""


def test_an_optimizer_that_a_setting_makes_and_nothing_steps_is_reported() -> None:
    check(LEARNER.format(code="  # GS512", step="pass"))


def test_an_optimizer_that_a_setting_makes_and_that_is_stepped_is_right() -> None:
    check(LEARNER.format(code="", step="self.alpha_optimizer.step()"))
