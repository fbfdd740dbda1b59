"""Algorithms that learn from what their policy has just done: `learn` collects, then calls `train`."""

import argparse

from stable_baselines3.common._samples import sampled
from stable_baselines3.common.policies import ActorCriticPolicy


class _Buffer:
    def __init__(self):
        self.values = sampled()
        self.returns = sampled()
        self.buffer_size = sampled()

    def get(self, batch_size=None):
        return sampled()

    def sample(self, batch_size, env=None):
        return sampled()


class OnPolicyAlgorithm:
    def __init__(self, policy=None, env=None, learning_rate=3e-4, *args, **kwargs):
        self.env = env
        self.policy = ActorCriticPolicy()
        self.rollout_buffer = _Buffer()
        self.learning_rate = learning_rate
        self.logger = argparse.Namespace()
        self.max_grad_norm = 0.5
        self._n_updates = 0

    def __gradsight_driver__(self):
        self.learn(1)

    def learn(self, total_timesteps, callback=None, log_interval=1, **kwargs):
        for _ in range(2):
            self.collect_rollouts(self.env, callback)
            self.train()
        return self

    def collect_rollouts(self, env, callback, *args, **kwargs):
        return True

    def train(self):
        pass

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return sampled(), state

    def _update_learning_rate(self, optimizers):
        pass
