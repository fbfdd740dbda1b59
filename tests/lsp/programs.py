"""Texts that the tests of this package open: one with a hazard, and what is right instead."""

from __future__ import annotations

HAZARD = """import torch

x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= 3
y.sum().backward()
"""
REPAIRED = HAZARD.replace("y *= 3", "y = y * 3")
EMOJI = HAZARD.replace("y *= 3", "é = '😀'; y *= 3")
EMOJI_REPAIRED = HAZARD.replace("y *= 3", "é = '😀'; y = y * 3")
SAFE = HAZARD.replace("x.exp()", "x * 2")
