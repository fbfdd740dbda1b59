"""Wrappers around an environment under the older name."""

from gymnasium.wrappers import *
