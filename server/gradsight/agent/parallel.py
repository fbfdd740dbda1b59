"""Data-parallel wrappers: how they bring the parameters of all ranks together is no part of the program's computation.

The constructor copies all parameters into one buffer, broadcasts it and copies it back: each parameter then has the values
it had, and followed by its values it would seem to be computed from all the others.
"""

from __future__ import annotations

from typing import Any

from torch.nn.parallel import DistributedDataParallel

from gradsight.agent.recorder import Situation


def overlook_synchronisation(situation: Situation) -> None:
    """Nothing is recorded while a wrapper is made."""
    wrapper: Any = DistributedDataParallel
    original = wrapper.__init__

    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        situation.quiet += 1
        try:
            original(self, *args, **kwargs)
        finally:
            situation.quiet -= 1

    wrapper.__init__ = begin
