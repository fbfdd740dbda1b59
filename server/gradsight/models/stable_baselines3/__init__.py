"""Stable-Baselines3: the algorithms train their policies; a class of the user's derives from one and overrides `train`."""
