"""Gymnasium: what an environment observes and rewards comes from a simulator and carries no graph."""

from gymnasium.simulator import observed


class Env:
    def __init__(self, *args, **kwargs):
        self.observation_space = observed()
        self.action_space = observed()
        self.single_observation_space = observed()
        self.single_action_space = observed()
        self.spec = observed()

    def reset(self, *, seed=None, options=None):
        return observed()

    def step(self, action):
        return observed()

    def render(self):
        return observed()

    def close(self):
        pass

    def seed(self, seed=None):
        pass

    @property
    def unwrapped(self):
        return self


class Wrapper(Env):
    def __init__(self, env):
        super().__init__()
        self.env = env

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=seed, options=options)

    def step(self, action):
        return self.env.step(action)


class ObservationWrapper(Wrapper):
    pass


class RewardWrapper(Wrapper):
    pass


class ActionWrapper(Wrapper):
    pass


def make(id, **options):
    return Env()


def make_vec(id, **options):
    return Env()
