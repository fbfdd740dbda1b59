"""Callbacks under the older name."""

from lightning.pytorch.callbacks import *
