"""A class that trains a network of its caller beside parts of its own: what it clears, what it holds, what follows."""

from __future__ import annotations

from tests.interp.checking import check

LEARNER = """
import copy

class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def forward(self, x):
        return self.fc(x)

class Plain(nn.Module):
    def forward(self, x):
        return x.sum(-1, keepdim=True)

class Learner:
    def __init__(self, agent, config):
        self.params = list(agent.parameters())
        self.agent = agent
        self.mixer = None
        if config.mixer is not None:
            if config.mixer == "plain":
                self.mixer = Plain()
            elif config.mixer == "learned":
                self.mixer = Mixer()
            {held}
        self.optimizer = torch.optim.RMSprop(self.params, lr=config.rate){missed}
        self.target_agent = copy.deepcopy(agent)
        self.last = 0

    def train(self, batch, episode):
        value = self.agent.forward(batch["state"])  # info GS606
        if self.mixer is not None:
            value = self.mixer(value)
        error = value - batch["gain"].detach()
        loss = (error ** 2).mean()
        {cleared}
        loss.backward(){left}
        self.optimizer.step()
        if episode - self.last > 200:
            self.follow()
            self.last = episode

    def follow(self):
        {follows}
"""
HELD = "self.params += list(self.mixer.parameters())"
CLEARED = "self.optimizer.zero_grad()"
FOLLOWS = "self.target_agent.load_state(self.agent)"


def learner(
    held: str = HELD, cleared: str = CLEARED, missed: str = "", left: str = "", follows: str = FOLLOWS
) -> str:
    return LEARNER.format(held=held, cleared=cleared, missed=missed, left=left, follows=follows)


def test_a_right_learner_is_fine() -> None:
    check(learner())


def test_a_part_that_only_some_settings_make_is_missed() -> None:
    check(learner(held="pass", missed="  # GS512"))


def test_a_part_that_other_code_may_add_is_not() -> None:
    check("from elsewhere import more\n" + learner(held="self.params += more(self.mixer)"))


def test_a_target_that_takes_over_the_weights_clears_nothing() -> None:
    check(learner(cleared="pass", left="  # GS501"))


def test_other_code_that_is_given_the_network_may_clear_it() -> None:
    check("from elsewhere import helper\n" + learner(cleared="helper.attend(self.agent)"))
