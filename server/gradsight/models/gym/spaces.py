"""Spaces under the older name."""

from gymnasium.spaces import Box, Discrete, Space

__all__ = ["Box", "Discrete", "Space"]
