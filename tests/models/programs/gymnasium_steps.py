"""Gymnasium: what an environment and its wrappers return holds no tensor with a graph."""

import gymnasium
import torch
from gymnasium.wrappers import RecordEpisodeStatistics, TransformReward
from parts import carries_graph
from recorder import log


class Own(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        log("reset")
        return self.observation_space.sample(), {}

    def step(self, action):
        log("step")
        return self.observation_space.sample(), 1.0, False, False, {}


def main():
    made = gymnasium.make("CartPole-v1")
    for env in (
        made,
        RecordEpisodeStatistics(made),
        gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")]),
    ):
        log(f"reset: {carries_graph(env.reset(seed=1))}")
        log(
            f"stepped: {carries_graph(env.step(env.action_space.sample()))}, {isinstance(env, torch.nn.Module)}"
        )
        env.close()
    wrapped = TransformReward(Own(), lambda reward: 2 * reward)
    wrapped.reset()
    wrapped.step(1)
    log(f"unwrapped: {type(wrapped.unwrapped).__name__}, {wrapped.env is wrapped.unwrapped}")
