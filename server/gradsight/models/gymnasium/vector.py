"""Environments side by side: they are given functions that make environments, and return no graphs."""

from gymnasium._simulator import observed


class VectorEnv:
    observation_space = observed()
    action_space = observed()
    single_observation_space = observed()
    single_action_space = observed()

    def reset(self, *, seed=None, options=None):
        return observed()

    def step(self, actions):
        return observed()

    def render(self):
        return observed()

    def close(self, **kwargs):
        pass


class SyncVectorEnv(VectorEnv):
    def __init__(self, env_fns, *args, **kwargs):
        self.env_fns = env_fns


class AsyncVectorEnv(VectorEnv):
    def __init__(self, env_fns, *args, **kwargs):
        self.env_fns = env_fns
