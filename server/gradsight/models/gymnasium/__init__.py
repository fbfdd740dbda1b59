"""Gymnasium: what an environment observes and rewards comes from a simulator and carries no graph."""

from gymnasium import spaces, vector
from gymnasium._simulator import observed


class Env:
    observation_space = observed()
    action_space = observed()
    single_observation_space = observed()
    single_action_space = observed()
    spec = observed()

    def reset(self, *, seed=None, options=None):
        return observed()

    def step(self, action):
        return observed()

    def render(self):
        return observed()

    def close(self):
        pass

    @property
    def unwrapped(self):
        return self


class Wrapper(Env):
    def __init__(self, env):
        self.env = env

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=seed, options=options)

    def step(self, action):
        return self.env.step(action)

    @property
    def unwrapped(self):
        return self.env.unwrapped


class ObservationWrapper(Wrapper):
    pass


class RewardWrapper(Wrapper):
    pass


class ActionWrapper(Wrapper):
    pass


class _Made(Env):
    pass


def make(id, max_episode_steps=None, disable_env_checker=None, **kwargs):
    return _Made()


def make_vec(id, num_envs=1, vectorization_mode=None, **kwargs):
    return _Made()
