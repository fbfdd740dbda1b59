"""Failures of our own are raised in these tests."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.fixes.checking")


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSIGHT_STRICT", "1")
