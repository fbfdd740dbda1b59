"""Two analyses at once do not disturb each other: nothing that decides a finding is shared between them."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source

FIXTURES = Path(__file__).parents[2] / "fixtures"
WORK = "\n".join(f"    part{number} = torch.ones(3) * {number}" for number in range(150))
EARLIER = WORK.replace("    ", "")
KEPT = f"""\
import torch


def make():
{WORK}
    return torch.zeros(3)


def same(value):
    return value


{EARLIER}
start = make()
start.add_(1)
change = same(start) - start
"""


@pytest.fixture
def eager_threads() -> object:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def sources() -> list[Source]:
    files = sorted(FIXTURES.rglob("*.py"))[::8]
    corpus = [Source(str(path), path.read_text(encoding="utf-8")) for path in files]
    return [Source(f"kept_{number}.py", KEPT) for number in range(20)] + corpus


def told(source: Source) -> list[tuple[str, int, str]]:
    return [(finding.code, finding.span.line, finding.message) for finding in analyze(source).findings]


def test_two_threads_say_what_one_says(eager_threads: object) -> None:
    corpus = sources()
    alone = [told(source) for source in corpus]
    beside: dict[int, list[list[tuple[str, int, str]]]] = {}

    def work(order: int) -> None:
        beside[order] = [told(source) for source in (corpus if order == 0 else corpus[::-1])]

    threads = [threading.Thread(target=work, args=(order,)) for order in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert beside[0] == alone
    assert beside[1] == alone[::-1]
