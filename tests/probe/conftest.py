"""One warm interpreter per test process: a probe of a small program takes milliseconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from gradsight.probe.standby import Standby


@pytest.fixture(scope="session")
def standby() -> Iterator[Standby]:
    warm = Standby()
    warm.warm(sys.executable)
    yield warm
    warm.drop()
