"""Work spread over processes, one piece at a time to whoever is free, where a process that dies costs one piece only."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

# Below this many bytes of work on a processor, another process costs more than it brings.
WORTH_A_PROCESS = 60_000 if sys.platform == "linux" else 600_000


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """The process that had this piece of work ended before it answered."""

    exit_code: int | None


class Line(Protocol):
    """Our end of the line to a process."""

    def send(self, piece: Any) -> None: ...
    def recv(self) -> Any: ...
    def close(self) -> None: ...


def processes_worth(amount: int, pieces: int, limit: int | None = None) -> int:
    """How many processes pay for this much work; 1 means that the work is done here."""
    return max(1, min(limit or available_processors(), pieces, amount // WORTH_A_PROCESS))


def available_processors() -> int:
    """The processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def work_through(
    work: Callable[[int], Any], pieces: Sequence[int], processes: int
) -> Iterator[tuple[int, Any]]:
    """Each piece with what `work` made of it, in the order in which they are done."""
    if processes < 2:
        was_collecting = gc.isenabled()
        # The work says itself when there is enough garbage to collect.
        gc.disable()
        try:
            for piece in pieces:
                yield piece, work(piece)
        finally:
            if was_collecting:
                gc.enable()
        return
    yield from _spread(work, pieces, processes)


def _spread(work: Callable[[int], Any], pieces: Sequence[int], processes: int) -> Iterator[tuple[int, Any]]:
    import multiprocessing
    from multiprocessing.connection import wait

    # Forking is safe here because no thread has been started; it shares what is loaded and starts in milliseconds.
    is_forking = sys.platform == "linux"
    context: Any = multiprocessing.get_context("fork" if is_forking else "spawn")
    waiting = list(reversed(pieces))
    busy: dict[Any, tuple[Any, int]] = {}

    def hire() -> None:
        ours, theirs = context.Pipe()
        inherited = (ours, *busy) if is_forking else ()
        process = context.Process(target=_serve, args=(theirs, work, inherited), daemon=True)
        process.start()
        theirs.close()
        assign(ours, process)

    def assign(line: Any, process: Any) -> None:
        if waiting:
            piece = waiting.pop()
            busy[line] = (process, piece)
            line.send(piece)
        else:
            line.close()

    try:
        for _ in range(processes):
            hire()
        while busy:
            ready: list[Any] = wait(list(busy))
            for line in ready:
                process, piece = busy.pop(line)
                try:
                    result = line.recv()
                except (EOFError, ConnectionResetError):
                    process.join()
                    yield piece, WorkerDied(process.exitcode)
                    if waiting:
                        hire()
                    continue
                assign(line, process)
                yield piece, result
    finally:
        for process, _ in busy.values():
            process.terminate()


def _serve(line: Line, work: Callable[[int], Any], inherited: Sequence[Line]) -> None:
    """The life of one process: take a piece, do it, answer; the end of the line is the end.

    A forked process has copies of its parent's ends of all lines.  Unless it closes them, no line would end with the
    parent, and an orphan would wait for ever.
    """
    for copy in inherited:
        copy.close()
    # The work says itself when there is enough garbage to collect.
    gc.disable()
    try:
        while True:
            line.send(work(line.recv()))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        pass
    finally:
        os._exit(0)
