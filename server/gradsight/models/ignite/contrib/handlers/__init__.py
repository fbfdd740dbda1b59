"""The handlers under their older name."""

from ignite.handlers import *
