"""Probes on behalf of an editor: one at a time, in an interpreter that stays warm between them.

A newer probe supersedes the one that runs: the user looks at the newest.  The thread that waits for a probe is a daemon,
and the probe's own process ends when ours does.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from gradsight.probe.outcome import Cancelled, Outcome, Progress
from gradsight.probe.request import ProbeRequest
from gradsight.probe.standby import Standby

Listener = Callable[[Progress], None]


@dataclass(slots=True)
class Running:
    """A probe under way: how to stop it, and how to know that it has ended."""

    stop: threading.Event = field(default_factory=threading.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Prober:
    """Runs probes for one session."""

    def __init__(self) -> None:
        self._standby = Standby()
        self._newest: Running | None = None

    def cancel(self) -> bool:
        """Stop the probe that runs; False if there is none."""
        if self._newest is None:
            return False
        self._newest.stop.set()
        return True

    async def run(self, request: ProbeRequest, listen: Listener) -> Outcome:
        """Run a probe after ending the one before it.  Cancelling the task that waits ends the probe too."""
        before, running = self._newest, Running()
        self._newest = running
        try:
            if before is not None:
                before.stop.set()
                await before.ended.wait()
            if running.stop.is_set():
                return Cancelled()
            return await self._follow(request, listen, running)
        finally:
            running.ended.set()
            if self._newest is running:
                self._newest = None

    def close(self) -> None:
        """End the probe that runs and the warm interpreter."""
        self.cancel()
        self._standby.drop()

    async def _follow(self, request: ProbeRequest, listen: Listener, running: Running) -> Outcome:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Outcome] = loop.create_future()

        def hear(progress: Progress) -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(listen, progress)

        def work() -> None:
            try:
                outcome = self._standby.run(request, None, hear, running.stop)
            except Exception as problem:
                _tell(loop, done, problem)
            else:
                _tell(loop, done, outcome)

        threading.Thread(target=work, name="gradsight-probe", daemon=True).start()
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            running.stop.set()
            # Whoever comes next must find the machine free.
            await asyncio.wait([done])
            raise


def _tell(loop: asyncio.AbstractEventLoop, done: asyncio.Future[Outcome], what: Outcome | Exception) -> None:
    def settle() -> None:
        if isinstance(what, Exception):
            done.set_exception(what)
        else:
            done.set_result(what)

    # A loop that is closed has nobody left who waits.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(settle)
