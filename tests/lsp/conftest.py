"""One server for the tests that need no special client; each test opens documents of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lsp.editor import Editor


@pytest.fixture(scope="package")
def editor() -> Iterator[Editor]:
    """An editor that can do everything, with a server that does not wait before it checks."""
    with Editor(options={"debounce": 0}) as shared:
        yield shared
