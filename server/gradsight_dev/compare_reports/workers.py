"""The analyses run in one process beside ours, so that a program that brings it down costs only its own record."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection

from gradsight_dev.compare_reports.corpora import Item
from gradsight_dev.compare_reports.recording import Record, Recorder

Analyse = Callable[[Item], Record]


def records_of(items: Iterable[Item], make: Callable[[], Analyse] = Recorder) -> Iterator[Record]:
    """The record of every program, in order; a program whose process died has `failed` say so."""
    worker = Worker(make)
    try:
        for item in items:
            yield worker.ask(item)
    finally:
        worker.end()


class Worker:
    """A process that answers one program at a time, and is started again when it died."""

    def __init__(self, make: Callable[[], Analyse]) -> None:
        self.make = make
        self.context = multiprocessing.get_context("fork")
        self._start()

    def ask(self, item: Item) -> Record:
        """The record of one program."""
        try:
            self.connection.send(item)
            record: Record = self.connection.recv()
            return record
        except (EOFError, ConnectionError):
            self.process.join()
            code = self.process.exitcode
            self._start()
            reason = f"the process that analysed it ended with code {code}"
            return {"name": item.name, "text": "", "findings": [], "failed": reason, "seconds": 0.0}

    def end(self) -> None:
        """No more programs."""
        self.connection.close()
        self.process.join()

    def _start(self) -> None:
        self.connection, theirs = self.context.Pipe()
        self.process = self.context.Process(
            target=_answer, args=(theirs, self.connection, self.make), daemon=True
        )
        self.process.start()
        theirs.close()


def _answer(connection: Connection, ours: Connection, make: Callable[[], Analyse]) -> None:
    # The forked copy of the asker's end would keep the pipe open after the asker has left.
    ours.close()
    analyse = make()
    while True:
        try:
            item = connection.recv()
        except EOFError:
            return
        connection.send(analyse(item))
