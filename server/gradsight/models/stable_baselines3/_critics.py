"""Actors and critics, each with an optimizer of its own."""

import torch
from torch import nn

from stable_baselines3.common.policies import BasePolicy


class Actor(BasePolicy):
    def __init__(self):
        super().__init__()
        self.mu = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
        self.optimizer = torch.optim.Adam(self.parameters(), lr=3e-4)

    def forward(self, obs, deterministic=False):
        return torch.tanh(self.mu(obs))

    def action_log_prob(self, obs):
        actions = torch.tanh(self.mu(obs))
        return actions, -actions.square().sum(dim=1)

    def reset_noise(self, batch_size=1):
        pass


class Critic(BasePolicy):
    def __init__(self):
        super().__init__()
        self.qf0 = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))
        self.qf1 = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))
        self.optimizer = torch.optim.Adam(self.parameters(), lr=3e-4)

    def forward(self, obs, actions):
        together = torch.cat([obs, actions], dim=1)
        return self.qf0(together), self.qf1(together)

    def q1_forward(self, obs, actions):
        return self.qf0(torch.cat([obs, actions], dim=1))


class Pair(BasePolicy):
    def __init__(self):
        super().__init__()
        self.actor = Actor()
        self.critic = Critic()
        self.critic_target = Critic()
        self.critic_target.load_state_dict(self.critic.state_dict())
