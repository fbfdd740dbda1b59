"""Spaces: sizes and samples without a graph."""

from gymnasium._simulator import observed


class Space:
    def sample(self, mask=None):
        return observed()

    def contains(self, x):
        return True


class Box(Space):
    def __init__(self, low, high, shape=None, dtype=None, seed=None):
        self.low = low
        self.high = high
        self.shape = shape if shape is not None else observed()


class Discrete(Space):
    def __init__(self, n, seed=None, start=0):
        self.n = n
        self.shape = ()
