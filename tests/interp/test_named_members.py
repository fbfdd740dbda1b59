"""Whose parameters an optimizer moves that nobody saw being made: names behind helpers, members of dicts, lists of results."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

DUEL = """
def toggle(model, flag):
    for p in model.parameters():
        p.requires_grad_(flag)

class Trainer:
    def __init__(self, generator, discriminator, g_optimizer, d_optimizer, kind):
        self.generator, self.discriminator = generator, discriminator
        self.g_optimizer, self.d_optimizer, self.kind = g_optimizer, d_optimizer, kind

    def generator_step(self, z):
        toggle(self.generator, True)
        toggle(self.discriminator, False)
        {clear_g}
        loss = -self.discriminator(self.generator(z)).mean()
        loss.backward(){said_g}
        self.g_optimizer.step()
        return loss.item()

    def discriminator_step(self, x, z):
        toggle(self.generator, False)
        toggle(self.discriminator, True)
        {clear_d}
        with torch.no_grad():
            fake = self.generator(z)
        loss = (self.discriminator(fake) - self.discriminator(x)).mean()
        if self.kind == "soft":
            loss = F.softplus(loss)
        loss.backward(){said_d}
        self.d_optimizer.step()
        return loss.item()
"""


def test_the_helper_that_met_a_network_first_does_not_name_it() -> None:
    check(DUEL.format(clear_g="pass", said_g="  # GS501", clear_d="self.d_optimizer.zero_grad()", said_d=""))
    check(DUEL.format(clear_g="self.g_optimizer.zero_grad()", said_g="", clear_d="pass", said_d="  # GS501"))


@pytest.mark.parametrize(
    ("clear_g", "clear_d"),
    [
        ("self.g_optimizer.zero_grad()", "self.d_optimizer.zero_grad()"),
        ("self.generator.zero_grad()", "self.discriminator.zero_grad()"),
        ("pass", "self.d_optimizer.zero_grad(); self.g_optimizer.zero_grad()"),
        ("pass", "[one.zero_grad() for one in (self.d_optimizer, self.g_optimizer)]"),
        ("pass", "self.d_optimizer.zero_grad(); self.generator.zero_grad()"),
    ],
)
def test_a_step_whose_gradients_another_method_clears_is_fine(clear_g: str, clear_d: str) -> None:
    check(DUEL.format(clear_g=clear_g, said_g="", clear_d=clear_d, said_d=""))


MEMBERS = """
class Trainer:
    def __init__(self, model, optimizer, criterion):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion

    def train_step(self, x, y):
        made = self.model["generator"](x)
        loss = self.criterion["mse"](made, y)
        {first}
        loss.backward(){said}
        torch.nn.utils.clip_grad_norm_(self.model["generator"].parameters(), 1.0)
        self.optimizer["generator"].step()
        self.optimizer["discriminator"].zero_grad()
        score = self.criterion["adv"](self.model["discriminator"](made.detach()))
        score.backward()
        torch.nn.utils.clip_grad_norm_(self.model["discriminator"].parameters(), 1.0)
        self.optimizer["discriminator"].step()
"""


def test_a_member_of_a_dict_is_known_by_its_name() -> None:
    report = check(MEMBERS.format(first="pass", said="  # GS501"))
    (found,) = [one for one in report.findings if one.code == "GS501"]
    assert "_generator" not in str(found)


@pytest.mark.parametrize(
    "first", ['self.optimizer["generator"].zero_grad()', 'self.model["generator"].zero_grad()']
)
def test_a_member_that_is_cleared_is_fine(first: str) -> None:
    check(MEMBERS.format(first=first, said=""))


COLLECTED = """
class Learner:
    def __init__(self, agent, args):
        self.agent, self.args = agent, args
        self.opt = torch.optim.RMSprop(list(agent.parameters()), lr=args.lr)

    def learn(self, batch, mask):
        outs = []
        for t in range(batch.length):
            if mask[t].sum() == 0:
                continue
            outs.append(self.agent(batch, t))
        values = torch.stack(outs, dim=1)
        loss = (values * mask).sum()
        {clear}
        loss.backward(){said}
        self.opt.step()
"""


def test_a_list_of_what_an_unknown_network_returned_has_its_graph() -> None:
    check(COLLECTED.format(clear="pass", said="  # GS501"))
    check(COLLECTED.format(clear="self.opt.zero_grad()", said=""))


SCALED = """
def train(nets, optims, scaler, loader):
    net_g, net_d = nets
    optim_g, optim_d = optims
    net_g.train()
    net_d.train()
    for x, y in loader:
        made = net_g(x)
        loss_d = (net_d(made.detach()) - net_d(y)).mean()
        {first}
        scaler.scale(loss_d).backward(){said_d}
        scaler.unscale_(optim_d)
        scaler.step(optim_d)
        loss_g = -net_d(made).mean()
        {second}
        scaler.scale(loss_g).backward(){said_g}
        scaler.unscale_(optim_g)
        scaler.step(optim_g)
        scaler.update()
"""


def test_of_two_optimizers_that_a_scaler_steps_each_is_for_its_own_network() -> None:
    clear_d, clear_g = "optim_d.zero_grad()", "optim_g.zero_grad()"
    check(SCALED.format(first="pass", second=clear_g, said_d="  # GS501", said_g=""))
    check(SCALED.format(first=clear_d, second="pass", said_d="", said_g="  # GS501"))
    check(SCALED.format(first=clear_d, second=clear_g, said_d="", said_g=""))
