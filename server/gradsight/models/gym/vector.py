"""Environments side by side under the older name."""

from gymnasium import make_vec as make
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

__all__ = ["AsyncVectorEnv", "SyncVectorEnv", "VectorEnv", "make"]
