"""Gym, the older name of Gymnasium; whatever `reset` and `step` return there carries no graph either."""

from gymnasium import ActionWrapper, Env, ObservationWrapper, RewardWrapper, Wrapper, make

from gym import spaces, vector

__all__ = [
    "ActionWrapper",
    "Env",
    "ObservationWrapper",
    "RewardWrapper",
    "Wrapper",
    "make",
    "spaces",
    "vector",
]
