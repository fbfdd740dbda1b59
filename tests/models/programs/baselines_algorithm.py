"""Stable-Baselines3: when `train` is called, and what the policy and its buffer give."""

import gymnasium
import torch
import torch.nn.functional as F
from parts import carries_graph, some
from recorder import log
from stable_baselines3 import A2C, DQN
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.utils import polyak_update


class Own(A2C):
    def collect_rollouts(self, *args, **kwargs):
        log("collect_rollouts")
        return super().collect_rollouts(*args, **kwargs)

    def train(self):
        log("train")
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        log(f"policy: {isinstance(self.policy, ActorCriticPolicy)}, {self.policy.training}")
        for data in self.rollout_buffer.get(batch_size=None):
            log(f"data: {carries_graph(data.observations)}, {carries_graph(data.advantages)}")
            observations, actions = some(data.observations, 4, 8), some(data.actions, 4, 1)
            values, log_prob, entropy = self.policy.evaluate_actions(observations, actions.long().flatten())
            log(f"evaluated: {carries_graph(values)}, {carries_graph(log_prob)}, {carries_graph(entropy)}")
            loss = F.mse_loss(values.flatten(), some(data.returns, 4))
            loss = loss - (some(data.advantages, 4) * log_prob).mean() - entropy.mean()
            self.policy.optimizer.zero_grad()
            loss.backward()
            log(f"gradients: {all(one.grad is not None for one in self.policy.parameters())}")
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()


class Off(DQN):
    def collect_rollouts(self, *args, **kwargs):
        log("collect_rollouts")
        return super().collect_rollouts(*args, **kwargs)

    def train(self, gradient_steps, batch_size=100):
        log(f"train {gradient_steps}")
        data = self.replay_buffer.sample(4)
        log(f"data: {carries_graph(data.observations)}, {carries_graph(data.rewards)}")


def main():
    own = Own("MlpPolicy", gymnasium.make("CartPole-v1"), n_steps=4, device="cpu")
    own.learn(8)
    log(f"predicted: {carries_graph(own.predict(own.env.reset())[0])}")
    Off(
        "MlpPolicy",
        gymnasium.make("CartPole-v1"),
        learning_starts=0,
        train_freq=4,
        buffer_size=50,
        device="cpu",
    ).learn(8)
    online, target = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    before = target.weight.detach().clone()
    polyak_update(online.parameters(), target.parameters(), 0.5)
    log(
        f"followed: {bool((target.weight != before).any())}, {target.weight.requires_grad}, {target.weight.is_leaf}"
    )
