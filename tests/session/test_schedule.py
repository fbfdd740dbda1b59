"""Work is done in order of urgency, whatever was asked for first."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

from gradsight.session.schedule import Urgency, Worker


def order_of(*urgencies: Urgency) -> list[Urgency]:
    """The order in which jobs that came while the worker was busy are done."""
    done: list[Urgency] = []

    async def ask() -> None:
        worker, gate = Worker(), threading.Event()
        busy = worker.submit(Urgency.BACKGROUND, gate.wait)
        jobs = [worker.submit(urgency, partial(done.append, urgency)) for urgency in urgencies]
        gate.set()
        await asyncio.gather(busy, *jobs)

    asyncio.run(ask())
    return done


def test_what_somebody_waits_for_comes_first() -> None:
    asked = (Urgency.BACKGROUND, Urgency.DEPENDENT, Urgency.TYPED, Urgency.AWAITED)
    assert order_of(*asked) == sorted(asked)


def test_equally_urgent_work_is_done_as_it_came() -> None:
    numbers: list[int] = []

    async def ask() -> None:
        worker, gate = Worker(), threading.Event()
        busy = worker.submit(Urgency.AWAITED, gate.wait)
        jobs = [worker.submit(Urgency.TYPED, partial(numbers.append, number)) for number in range(5)]
        gate.set()
        await asyncio.gather(busy, *jobs)

    asyncio.run(ask())
    assert numbers == [0, 1, 2, 3, 4]
