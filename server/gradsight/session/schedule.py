"""When work is done: one thread that works off jobs in order of urgency, so that messages are always answered.

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


class Urgency(IntEnum):
    """The smaller, the sooner."""

    AWAITED = 0
    TYPED = 1
    DEPENDENT = 2
    BACKGROUND = 3


class Worker:
    """One thread of its own; jobs run one after the other."""

    def __init__(self) -> None:
        self._jobs: list[tuple[int, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None

    def submit(self, urgency: Urgency, work: Callable[[], Result]) -> asyncio.Future[Result]:
        """Have work done; the future belongs to the running event loop.  Cancelled before its turn, it is not done."""
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
            heapq.heappush(self._jobs, (int(urgency), next(self._count), job))
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
                _, _, job = heapq.heappop(self._jobs)
            job()
            # The job holds its result; it must not live on until the next one comes.
            del job


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
