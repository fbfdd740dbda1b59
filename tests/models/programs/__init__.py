"""Tiny programs whose calls are recorded, under the real library and under our model of it."""
