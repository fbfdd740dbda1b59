"""Blocks in outline: what they return depends on what they get and on their parameters."""

from torch import nn


class _Block(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, 1)

    def forward(self, x):
        return self.conv(x)


def _blocks(kind, widths):
    """A block from every width to the next one, in loops that are short enough to be executed to their end."""
    if len(widths) > 11:
        return _blocks(kind, widths[:11]) + _blocks(kind, widths[10:])
    return [kind(widths[place], widths[place + 1]) for place in range(len(widths) - 1)]
