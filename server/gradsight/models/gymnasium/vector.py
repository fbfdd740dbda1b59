"""Environments side by side: they are given functions that make environments, and return no graphs."""

from gymnasium import Env


class VectorEnv(Env):
    pass


class SyncVectorEnv(VectorEnv):
    pass


class AsyncVectorEnv(VectorEnv):
    pass
