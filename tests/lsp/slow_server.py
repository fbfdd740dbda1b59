"""A server whose analysis takes very long, and which has a command that takes very long: for tests of the end."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gradsight.analysis import Finder
from gradsight.lsp import starting
from gradsight.lsp.server import GradSightServer
from gradsight.lsp.serving import leave, serve_stdio
from gradsight.model.card import Card
from gradsight.model.report import Report
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session.analyser import Stop
from gradsight.session.session import EditorSession

SECONDS = 300


class Slow:
    """Computes and computes."""

    def analyze(self, source: Source, settings: Settings, finder: Finder | None, stop: Stop) -> Report | None:
        note("analysing")
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            sum(range(1000))
        return Report(source.path)

    def forget(self) -> None:
        pass

    def analyze_at_once(self, source: Source, settings: Settings, finder: Finder | None) -> Report | None:
        return None

    def cards(
        self, source: Source, settings: Settings, finder: Finder | None, first_line: int, last_line: int
    ) -> Sequence[Card]:
        return ()


def note(what: str) -> None:
    """Leave a mark for the test to read."""
    with Path(sys.argv[1]).open("a") as marks:
        marks.write(f"{what}\n")


async def work(ls: GradSightServer) -> None:
    note("working")
    try:
        await asyncio.sleep(SECONDS)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    note("done")


if __name__ == "__main__":
    starting.prepare_logging(argparse.Namespace(log_level="warning"))
    server = GradSightServer(EditorSession(Slow))
    server.add_command("gradsight.work", work)
    leave(serve_stdio(server.protocol))
