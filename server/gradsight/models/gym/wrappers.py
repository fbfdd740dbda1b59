"""Wrappers around an environment under the older name."""

from gymnasium.wrappers import *
from gymnasium.wrappers import _Wrapped

FrameStack = GrayScaleObservation = _Wrapped
