"""Policies: modules with an optimizer of their own."""

import torch
from stable_baselines3.common._samples import sampled
from torch import nn


class BaseModel(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def set_training_mode(self, mode):
        self.train(mode)

    def obs_to_tensor(self, observation):
        return sampled(), True


class BasePolicy(BaseModel):
    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return sampled(), state


class ActorCriticPolicy(BasePolicy):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self.features = nn.Linear(8, 64)
        self.action_net = nn.Linear(64, 2)
        self.value_net = nn.Linear(64, 1)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=3e-4)

    def evaluate_actions(self, obs, actions):
        latent = torch.tanh(self.features(obs))
        log_prob = torch.log_softmax(self.action_net(latent), -1).sum(-1)
        return self.value_net(latent), log_prob, -log_prob

    def predict_values(self, obs):
        return self.value_net(torch.tanh(self.features(obs)))

    def forward(self, obs, deterministic=False):
        values, log_prob, _ = self.evaluate_actions(obs, None)
        return sampled(), values, log_prob


ActorCriticCnnPolicy = MultiInputActorCriticPolicy = ActorCriticPolicy
