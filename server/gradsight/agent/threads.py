"""Gradients read while another thread may still write them.

A thread's backward is *settled* for a reader when the reader has waited for it: joined the thread, taken the result of
a future, got an item from a queue, waited for an event.  Sleeping is no waiting.
"""

from __future__ import annotations

import queue
import threading
from concurrent import futures
from dataclasses import dataclass
from typing import Any

from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.sites import Stack, capture, place_of, text_of

_MAIN = threading.main_thread()


@dataclass
class _Read:
    bit: int
    stack: Stack
    unfinished: frozenset[int]


class ThreadWatch:
    """Who ran backward in which thread, and who read the gradients before it was settled."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._running: dict[int, Stack] = {}
        self._unsettled: dict[int, int] = {}
        self._reads: list[_Read] = []

    @property
    def active(self) -> bool:
        """Whether any thread of the user was started and not waited for."""
        return bool(self._running)

    def install(self) -> None:
        """Listens to starts of threads and to the usual ways to wait."""
        watch = self
        start, join = threading.Thread.start, threading.Thread.join

        def started(self: threading.Thread) -> None:
            if not self.name.startswith("gradsight-"):
                watch._running[id(self)] = capture(2)
            start(self)

        def joined(self: threading.Thread, timeout: float | None = None) -> None:
            join(self, timeout)
            if not self.is_alive():
                watch._settle(id(self))

        threading.Thread.start = started  # type: ignore[method-assign]
        threading.Thread.join = joined  # type: ignore[method-assign]
        for owner, name in ((futures.Future, "result"), (queue.Queue, "get"), (threading.Event, "wait")):
            self._settle_after(owner, name)

    def _settle_after(self, owner: Any, name: str) -> None:
        original = getattr(owner, name)
        watch = self

        def waited(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            if watch._running:
                watch._settle_all()
            return result

        setattr(owner, name, waited)

    def _settle(self, thread: int) -> None:
        self._running.pop(thread, None)
        self._unsettled = {bit: writer for bit, writer in self._unsettled.items() if writer != thread}
        self._reads = [
            read for read in self._reads if thread not in read.unfinished or len(read.unfinished) > 1
        ]

    def _settle_all(self) -> None:
        """Everything that was computed so far is settled; threads that go on may still write."""
        self._unsettled.clear()

    @quietly
    def backward(self, bits: list[int]) -> None:
        """A backward gave these leaves a gradient in the running thread."""
        thread = threading.current_thread()
        if thread is _MAIN:
            return
        reached = set(bits)
        for read in self._reads:
            if read.bit in reached and id(thread) in read.unfinished:
                self._report(read.stack, self._running.get(id(thread), ()))
        for bit in bits:
            self._unsettled[bit] = id(thread)

    @quietly
    def read(self, bit: int) -> None:
        """`.grad` of a leaf is read in the running thread."""
        thread = threading.current_thread()
        others = frozenset(item for item in self._running if item != id(thread))
        if not others:
            return
        stack = capture(4)
        writer = self._unsettled.get(bit)
        if writer is not None and writer != id(thread):
            self._report(stack, self._running.get(writer, ()))
        elif len(self._reads) < 1000:
            self._reads.append(_Read(bit, stack, others))

    def _report(self, stack: Stack, started: Stack) -> None:
        if not stack:
            return
        place = place_of(stack[0])
        message = f"`{text_of(place)}` is read while a thread that runs backward has not been waited for"
        steps = step_at("call", "the thread is started here", started)
        self.ledger.add(Fault("grad-read-in-race", message, place, steps, "warning", {}))
