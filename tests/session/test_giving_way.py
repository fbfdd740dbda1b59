"""One document never keeps the others waiting: long work gives way, ends when its document is closed, and is left in the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from gradsight.analysis import Analyser, Finder, analyze
from gradsight.model.report import Report
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session import session as sessions
from gradsight.session.analyser import Stop
from gradsight.session.schedule import MOST_WAITING, Urgency, Worker
from gradsight.session.session import EditorSession
from tests.session.test_session import Marks, until

LOOP = "import torch\nw = torch.ones(3, requires_grad=True)\n" + "".join(
    f"for i in range(9):\n    for j in range(9):\n        y{k} = w.exp() * i + j\n" for k in range(3)
)


class Endless(Marks):
    """An analyser that never ends a text with `endless` in it, unless it is stopped."""

    def analyze(self, source: Source, settings: Settings, finder: Finder | None, stop: Stop) -> Report | None:
        if "endless" in source.text:
            self.seen.append(source.text)
            while not stop():
                threading.Event().wait(0.002)
            self.stopped += 1
            return None
        return super().analyze(source, settings, finder, stop)


def test_what_belongs_to_others_is_done_while_a_long_job_waits() -> None:
    done: list[str] = []

    async def ask() -> None:
        worker, gate = Worker(), threading.Event()

        def long() -> None:
            gate.wait()
            worker.give_way()
            done.append("long")

        def noted(name: str) -> Callable[[], None]:
            return lambda: done.append(name)

        jobs = [
            worker.submit(Urgency.TYPED, long, "a"),
            worker.submit(Urgency.TYPED, noted("other"), "b"),
            worker.submit(Urgency.AWAITED, noted("its own"), "a"),
            worker.submit(Urgency.AWAITED, noted("nobody's")),
            worker.submit(Urgency.BACKGROUND, noted("less urgent"), "c"),
        ]
        gate.set()
        await asyncio.gather(*jobs)

    asyncio.run(ask())
    assert done == ["other", "long", "its own", "nobody's", "less urgent"]


def test_where_several_wait_only_what_is_more_urgent_comes_in_between() -> None:
    depths: list[int] = []
    asked: list[int] = []

    async def ask() -> None:
        worker, gate, lock = Worker(), threading.Event(), threading.Lock()
        depth = 0

        def long() -> None:
            nonlocal depth
            gate.wait()
            with lock:
                depth += 1
                depths.append(depth)
            worker.give_way()
            with lock:
                depth -= 1

        jobs = [worker.submit(Urgency.TYPED, long, f"document {number}") for number in range(12)]

        def awaited() -> None:
            asked.append(len(depths))

        jobs.append(worker.submit(Urgency.AWAITED, awaited, "hover"))
        gate.set()
        await asyncio.gather(*jobs)

    asyncio.run(ask())
    assert len(depths) == 12
    assert max(depths) == MOST_WAITING + 1
    assert asked == [1]


def test_what_fails_in_between_costs_the_long_job_nothing() -> None:
    async def ask() -> None:
        worker, gate = Worker(), threading.Event()

        def long() -> str:
            gate.wait()
            worker.give_way()
            return "done"

        first = worker.submit(Urgency.TYPED, long, "a")
        second = worker.submit(Urgency.TYPED, lambda: 1 // 0, "b")
        gate.set()
        assert await first == "done"
        with pytest.raises(ZeroDivisionError):
            await second

    asyncio.run(ask())


def test_an_analysis_asks_in_the_middle_of_an_entry() -> None:
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return False

    report = Analyser().analyze_unless(stop, Source("a.py", LOOP))
    assert report == analyze(Source("a.py", LOOP))
    assert asked > 2


@pytest.mark.parametrize("questions", [0, 1, 3])
def test_an_analysis_that_was_stopped_in_an_entry_is_made_up_for(questions: int) -> None:
    analyser = Analyser()
    first = Source("a.py", LOOP)
    analyser.analyze(first)
    for text in (LOOP.replace("w.exp()", "w.sin()", 1), "import os\n" + LOOP, LOOP + "w += 1\n"):
        left = iter(range(questions))
        assert (
            analyser.analyze_unless(lambda left=left: next(left, None) is None, Source("a.py", text)) is None
        )
        assert analyser.analyze(Source("a.py", text)) == analyze(Source("a.py", text))


def story(tell: Callable[[EditorSession, list[str]], object]) -> None:
    seen: list[str] = []

    async def all_of_it() -> None:
        session = EditorSession(lambda: Endless(seen))
        await tell(session, seen)  # type: ignore[misc]

    asyncio.run(asyncio.wait_for(all_of_it(), 20))


def test_the_findings_of_a_document_do_not_wait_for_another_one() -> None:
    async def tell(session: EditorSession, seen: list[str]) -> None:
        hostile = session.open_document("h", "h", 1, "endless")
        session.request(hostile, 0.0)
        await until(lambda: seen == ["endless"])
        good = session.open_document("g", "g", 1, "bad")
        session.request(good, 0.0)
        assert await session.current(good)
        assert len(good.findings) == 1
        assert hostile.report is None
        session.close(hostile)

    story(tell)


def test_closing_a_document_ends_its_work() -> None:
    async def tell(session: EditorSession, seen: list[str]) -> None:
        hostile = session.open_document("h", "h", 1, "endless")
        session.request(hostile, 0.0)
        await until(lambda: seen == ["endless"])
        session.close(hostile)
        analyser = hostile.analyser
        assert isinstance(analyser, Endless)
        await until(lambda: analyser.stopped == 1)

    story(tell)


def test_a_document_over_its_time_is_left_with_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_SECONDS", 0)

    async def tell(session: EditorSession, seen: list[str]) -> None:
        hostile = session.open_document("h", "h", 1, "endless")
        session.request(hostile, 0.0)
        assert await session.current(hostile)
        assert hostile.report is not None
        assert [(gap.reason, gap.kind) for gap in hostile.report.gaps] == [(sessions.TOOK_TOO_LONG, "budget")]

    story(tell)
