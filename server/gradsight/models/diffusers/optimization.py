"""Schedules of the learning rate, the same as those of transformers."""

from transformers.optimization import *
