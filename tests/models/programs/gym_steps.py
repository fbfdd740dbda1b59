"""Gym under its older name: what an environment returns holds no tensor with a graph."""

import gym
from gym import spaces
from parts import carries_graph
from recorder import log


class Own(gym.Env):
    observation_space = spaces.Box(-1.0, 1.0, (2,))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        log("reset")
        return self.observation_space.sample(), {}

    def step(self, action):
        log("step")
        return self.observation_space.sample(), 1.0, False, False, {}


class Doubled(gym.Wrapper):
    def step(self, action):
        log("wrapped step")
        return self.env.step(action)


def main():
    env = Doubled(Own())
    log(f"reset: {carries_graph(env.reset())}")
    log(f"stepped: {carries_graph(env.step(1))}, {type(env.unwrapped).__name__}")
