"""DQN: a policy with a network and its target; its optimizer holds the network alone."""

import torch
from torch import nn

from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy


class _Network(BasePolicy):
    def __init__(self):
        super().__init__()
        self.q_net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, obs):
        return self.q_net(obs)


class _Policy(BasePolicy):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self.q_net = _Network()
        self.q_net_target = _Network()
        self.q_net_target.load_state_dict(self.q_net.state_dict())
        self.optimizer = torch.optim.Adam(self.q_net.parameters(), lr=1e-4)

    def forward(self, obs, deterministic=True):
        return self.q_net(obs).argmax(dim=1)


class DQN(OffPolicyAlgorithm):
    def __init__(self, policy=None, env=None, learning_rate=1e-4, *args, max_grad_norm=10, **kwargs):
        super().__init__(policy, env, learning_rate, *args, **kwargs)
        self.policy = _Policy()
        self.q_net = self.policy.q_net
        self.q_net_target = self.policy.q_net_target
        self.max_grad_norm = max_grad_norm
