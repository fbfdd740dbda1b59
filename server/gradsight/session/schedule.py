"""When work is done: one thread that works off jobs in order of urgency, so that messages are always answered.

A long job *gives way*: it calls `give_way` now and then, and what is as urgent and belongs to another owner is done in
between, on a stack of its own, while the long job waits.  So one document never keeps the others waiting.  When several wait
already, only what is more urgent comes in between: what jobs share is found by the one that is allowed to end.
*Urgency*: what somebody waits for comes before what they see by themselves, and that before what nobody asked for.
The thread is a daemon: a process that ends does not wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import threading
from collections.abc import Callable
from enum import IntEnum
from typing import TypeVar

Result = TypeVar("Result")

MOST_WAITING = 3
"""So many jobs may wait for others that are as urgent as they are."""


class Urgency(IntEnum):
    """The smaller, the sooner."""

    AWAITED = 0
    TYPED = 1
    DEPENDENT = 2
    BACKGROUND = 3


class Worker:
    """One thread of its own; jobs run one after the other."""

    def __init__(self) -> None:
        self._jobs: list[tuple[int, int, str, Callable[[], None]]] = []
        self._running: list[tuple[int, str]] = []
        """The urgency and owner of the job that runs, behind those of jobs that wait for it to end."""
        self._count = itertools.count()
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None

    def submit(self, urgency: Urgency, work: Callable[[], Result], owner: str = "") -> asyncio.Future[Result]:
        """Have work done; the future belongs to the running event loop.  Cancelled before its turn, it is not done.

        Work with an owner may be done while a job of another owner waits.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def job() -> None:
            if future.cancelled():
                return
            try:
                result = work()
            except Exception as problem:
                _tell(loop, _fail, future, problem)
            else:
                _tell(loop, _fulfil, future, result)

        with self._news:
            heapq.heappush(self._jobs, (int(urgency), next(self._count), owner, job))
            self._news.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work_off, name="gradsight-worker", daemon=True)
            self._thread.start()
        return future

    def _work_off(self) -> None:
        while True:
            with self._news:
                while not self._jobs:
                    self._news.wait()
                urgency, _, owner, job = heapq.heappop(self._jobs)
            self._running = [(urgency, owner)]
            job()
            # The job holds its result; it must not live on until the next one comes.
            del job

    def give_way(self) -> None:
        """For the job that runs: what is as urgent and is nobody's who waits already is done now."""
        while self._jobs:
            with self._news:
                urgency = self._running[-1][0]
                waiting = {owner for _, owner in self._running}
                least = urgency if len(self._running) <= MOST_WAITING else urgency - 1
                able = [one for one in self._jobs if one[0] <= least and one[2] and one[2] not in waiting]
                if not able:
                    return
                chosen = min(able)
                self._jobs.remove(chosen)
                heapq.heapify(self._jobs)
            self._running.append((chosen[0], chosen[2]))
            other = threading.Thread(target=chosen[3], name="gradsight-between", daemon=True)
            other.start()
            other.join()
            self._running.pop()


def _tell(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *arguments: object) -> None:
    """Hand a result over; a loop that is closed has nobody left who waits for it."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call, *arguments)


def _fulfil(future: asyncio.Future[Result], result: Result) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Result], problem: Exception) -> None:
    if not future.done():
        future.set_exception(problem)
