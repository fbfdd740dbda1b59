"""Garbage is collected between analyses, not in the middle of one: an answer must not wait for it.

Python's own schedule looks at all objects whenever a quarter more of them has come to live, which with a large text open
is in the middle of typing.  Here the young objects of an analysis are looked through right after its answer is out, and
all objects when nothing has been typed for a while, or after very many edits without a rest.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

SECONDS_OF_REST = 2.0
MOST_UNTIL_FULL = 400
YOUNG = 1


class Housekeeper:
    """Decides when to collect.  Until `take_over` Python's own schedule holds."""

    def __init__(self) -> None:
        self._is_in_charge = False
        self._since_full = 0
        self._timer: asyncio.TimerHandle | None = None
        self.on_rest: Callable[[], None] = lambda: None
        """Called when nothing has been typed for a while."""

    def take_over(self) -> None:
        """What lives now lives for ever (the engine and its table), and is never looked through again."""
        self._is_in_charge = True
        gc.disable()
        gc.freeze()

    def answered(self) -> None:
        """An answer is out: collect what it left behind, once the loop has nothing else to do."""
        if not self._is_in_charge:
            return
        self._since_full += 1
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(SECONDS_OF_REST, self._rest)
        if self._since_full >= MOST_UNTIL_FULL:
            loop.call_soon(self._collect_all)
        else:
            loop.call_soon(gc.collect, YOUNG)

    def _rest(self) -> None:
        self._collect_all()
        self.on_rest()

    def _collect_all(self) -> None:
        self._since_full = 0
        gc.collect()
