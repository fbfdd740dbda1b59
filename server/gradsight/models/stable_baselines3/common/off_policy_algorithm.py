"""Algorithms that learn from a buffer of what was done before: `learn` collects, then calls `train`."""

import argparse

from stable_baselines3.common._samples import sampled
from stable_baselines3.common.on_policy_algorithm import _Buffer


class OffPolicyAlgorithm:
    def __init__(self, policy=None, env=None, learning_rate=3e-4, *args, **kwargs):
        self.env = env
        self.replay_buffer = _Buffer()
        self.learning_rate = learning_rate
        self.logger = argparse.Namespace()
        self.gamma = 0.99
        self.tau = 0.005
        self._n_updates = 0
        self._vec_normalize_env = None

    def __gradsight_driver__(self):
        self.learn(1)

    def learn(self, total_timesteps, callback=None, log_interval=4, **kwargs):
        for _ in range(2):
            self.collect_rollouts(self.env, callback)
            self.train(gradient_steps=1, batch_size=64)
        return self

    def collect_rollouts(self, env, callback, train_freq=None, replay_buffer=None, **kwargs):
        return True

    def train(self, gradient_steps, batch_size=64):
        pass

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return sampled(), state

    def _setup_model(self):
        pass

    def _update_learning_rate(self, optimizers):
        pass
