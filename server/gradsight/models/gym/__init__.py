"""Gym, the older name of Gymnasium; whatever `reset` and `step` return there carries no graph either."""

from gymnasium import ActionWrapper, Env, ObservationWrapper, RewardWrapper, Wrapper, make

__all__ = ["ActionWrapper", "Env", "ObservationWrapper", "RewardWrapper", "Wrapper", "make"]
