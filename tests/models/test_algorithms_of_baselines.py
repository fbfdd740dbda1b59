"""Algorithms that derive from those of Stable-Baselines3: their networks, targets and optimizers are known."""

from __future__ import annotations

import pytest

from tests.models.checking import check

VALUES = """
from stable_baselines3 import DQN

class Double(DQN):
    def train(self, gradient_steps, batch_size=100):
        self.policy.set_training_mode(True)
        for _ in range(gradient_steps):
            data = self.replay_buffer.sample(batch_size)
            with torch.no_grad():
                following = self.q_net_target(data.next_observations).max(dim=1)[0].reshape(-1, 1)
                target = data.rewards + (1 - data.dones) * self.gamma * following
            values = torch.gather(self.q_net(data.observations), dim=1, index=data.actions.long())
            loss = F.smooth_l1_loss(values{cut}, target)
            {clear}
            loss.backward(){mark}
            nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
"""
ACTORS = """
from stable_baselines3 import SAC, TD3
from stable_baselines3.common.utils import polyak_update

class Own({base}):
    def train(self, gradient_steps, batch_size=64):
        for _ in range(gradient_steps):
            data = self.replay_buffer.sample(batch_size)
            with torch.no_grad():
                target = data.rewards + self.gamma * torch.cat(
                    self.critic_target(data.next_observations, data.actions), dim=1
                ).min(dim=1, keepdim=True)[0]
            loss = sum(F.mse_loss(one, target) for one in self.critic(data.observations, data.actions))
            {clear}
            loss.backward(){mark}
            self.critic.optimizer.step()
            polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
"""


def values(cut: str = "", clear: str = "self.policy.optimizer.zero_grad()", mark: str = "") -> str:
    return VALUES.format(cut=cut, clear=clear, mark=mark)


def test_value_network_of_an_algorithm() -> None:
    check(values())
    check(values(clear="pass", mark="  # GS501"))
    check(values(cut=".detach()").replace(", target)\n", ", target)  # GS203\n"))


@pytest.mark.parametrize("base", ["SAC", "TD3"])
def test_critic_of_an_algorithm(base: str) -> None:
    check(ACTORS.format(base=base, clear="self.critic.optimizer.zero_grad()", mark=""))
    check(ACTORS.format(base=base, clear="pass", mark="  # GS501"))


EXTRACTOR = """
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

class Features(BaseFeaturesExtractor):
    def __init__(self, observation_space, features_dim=16):
        super().__init__(observation_space, features_dim)
        self.net = nn.Linear(observation_space.shape[0], features_dim)

    def forward(self, observations):
        hidden = torch.tanh(self.net(observations))
        {body}
        return hidden
"""


def test_extractor_of_features_is_a_module() -> None:
    check(EXTRACTOR.format(body="hidden += 1  # GS101"))
    check(EXTRACTOR.format(body="hidden = hidden + 1"))
