"""One warm interpreter per test process: a probe of a small program takes milliseconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gradsight.probe.standby import Standby
from tests.probe.expectation import PYTHON


@pytest.fixture(scope="session")
def standby() -> Iterator[Standby]:
    warm = Standby()
    warm.warm(PYTHON)
    yield warm
    warm.drop()
