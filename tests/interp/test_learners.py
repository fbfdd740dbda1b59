"""A class that trains a network of its caller beside parts of its own: what it clears, what it holds, what follows."""

from __future__ import annotations

import pytest

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


WORKERS = """
import torch.multiprocessing as mp

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.e, self.f, self.g, self.h = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return self.h(self.g(self.f(self.e(self.d(self.c(self.b(self.a(x))))))))

def hand_over(model, shared):
    for own, theirs in zip(model.parameters(), shared.parameters()):
        if theirs.grad is not None:
            return
        theirs._grad = own.grad

def train(rank, shared, optimizer):
    model = Net()
    if optimizer is None:
        optimizer = torch.optim.Adam({held}, lr=0.1)
    while True:
        {sync}
        loss = F.mse_loss(model(torch.randn(4, 8)), torch.randn(4, 8))
        optimizer.zero_grad()
        loss.backward()
        hand_over(model, shared)
        optimizer.step()

shared = Net()
shared.share_memory()
for rank in range(4):
    mp.Process(target=train, args=(rank, shared, None)).start()
"""


def test_a_loop_that_hands_gradients_over_is_for_all_parameters() -> None:
    check(WORKERS.format(held="shared.parameters()", sync="model.load_state_dict(shared.state_dict())"))


EXPECTED = """
class Agent:
    def __init__(self, states, actions):
        self.network = nn.Linear(states, actions)
        self.optimizer = torch.optim.Adam(self.network.parameters())
    def learn(self, experiences):
        states, actions, rewards, next_states, dones = experiences
        best = self.network(next_states){cut}.max(1)[0].unsqueeze(1)
        q_targets = rewards + 0.99 * best * (1 - dones)
        q_expected = self.network(states).gather(1, actions)
        loss = F.mse_loss({sides}){code}
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""


@pytest.mark.parametrize("sides", ["q_expected, q_targets", "q_targets, q_expected"])
def test_of_two_sides_that_are_named_alike_the_one_made_of_rewards_is_the_target(sides: str) -> None:
    check(EXPECTED.format(cut="", sides=sides, code="  # GS290"))
    check(EXPECTED.format(cut=".detach()", sides=sides, code=""))


WORKER = """
def share(model, shared):
    for own, theirs in zip(model.parameters(), shared.parameters()):
        if theirs.grad is not None:
            return
        theirs._grad = own.grad

def work(shared, optimizer, states):
    if optimizer is None:
        optimizer = torch.optim.Adam(shared.parameters())
    model = nn.Linear(3, 3){code}
    for _ in range(10):
        model.load_state_dict(shared.state_dict())
        model.zero_grad()
        model(states).sum().backward()
        {share}
        optimizer.step()
"""


def test_a_worker_may_hand_its_gradients_to_the_model_that_all_share() -> None:
    check(WORKER.format(share="share(model, shared)", code=""))
    check(WORKER.format(share="pass", code="  # GS504"))
