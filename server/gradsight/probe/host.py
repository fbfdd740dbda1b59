"""Our side of a running probe: start the agent in its own session, listen, keep the limits, and leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gradsight.agent import wire
from gradsight.agent.supervise import descendants_of
from gradsight.probe import channel
from gradsight.probe.kinds import coded
from gradsight.probe.message_shapes import has_shape
from gradsight.probe.outcome import (
    Cancelled,
    CouldNotRun,
    Died,
    Observed,
    Outcome,
    Progress,
    Raised,
    Report,
    Streams,
    TimedOut,
)
from gradsight.probe.request import ProbeRequest

BOOT = str(Path(__file__).resolve().parent.parent / "agent" / "boot.py")
_GRACE = 1.0
_START_LIMIT = 120.0
_READ_SIZE = 1 << 16

Listener = Callable[[Progress], None]


def run(
    request: ProbeRequest,
    streams: Streams | None = None,
    listen: Listener | None = None,
    cancel: threading.Event | None = None,
) -> Outcome:
    """Runs one probe from start to end in a fresh process."""
    with private_folder() as folder:
        try:
            conversation = launch(request, folder, streams or Streams())
        except OSError as error:
            return CouldNotRun(f"the interpreter {request.python} cannot be started", str(error))
        with conversation:
            conversation.send(wire.RUN, {"request": request.as_message(folder)})
            return conversation.follow(request.timeout, listen, cancel)


@contextlib.contextmanager
def private_folder() -> Iterator[str]:
    """A folder of our own, readable by nobody else, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="gradsight-", ignore_cleanup_errors=True) as folder:
        yield folder


class Conversation:
    """A running agent: its channel, its lifeline, its output.  Leaving the block ends every process of it."""

    def __init__(
        self,
        endpoint: socket.socket,
        lifeline: channel.Stream,
        outputs: tuple[channel.Stream, channel.Stream],
        streams: Streams,
        folder: str,
        mark: str,
        key: str,
    ) -> None:
        self.endpoint = endpoint
        self.lifeline = lifeline
        self.outputs = outputs
        self.streams = streams
        self.folder = folder
        self.mark = mark
        self.process: subprocess.Popen[bytes] | None = None
        self.group = 0
        self.status: int | None = None
        self._key = key
        self._decoder = wire.Decoder(key)
        self._tail = bytearray()
        self._report: Report | None = None
        self._partial: Report | None = None
        self._refusal: dict[str, Any] | None = None
        self._started = False

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *unused: object) -> None:
        self.kill()
        self.endpoint.close()
        for stream in (self.lifeline, *self.outputs):
            channel.close(stream)

    def send(self, kind: str, body: dict[str, Any]) -> None:
        """A message to the agent; a dead agent is noticed by `follow`."""
        with contextlib.suppress(OSError):
            self.endpoint.sendall(wire.encode(kind, body))

    def follow(self, timeout: float, listen: Listener | None, cancel: threading.Event | None) -> Outcome:
        """Listens until the agent has reported, died, or used up its time."""
        begun = time.monotonic()
        deadline: float | None = None
        ended = 0.0
        with selectors.DefaultSelector() as selector:
            selector.register(self.endpoint, selectors.EVENT_READ, "wire")
            for index, stream in enumerate(self.outputs):
                channel.unblock(stream)
                selector.register(stream, selectors.EVENT_READ, index)
            while True:
                if cancel is not None and cancel.is_set():
                    self.kill()
                    return Cancelled(self._partial, self.output)
                if timeout and self._started and deadline is None:
                    deadline = time.monotonic() + timeout
                now = time.monotonic()
                if deadline is not None and now > deadline:
                    self.kill()
                    self._drain(selector, listen)
                    if self._report is None:
                        return TimedOut(timeout, self._partial, self.output)
                if not self._started and now - begun > _START_LIMIT + timeout:
                    self.kill()
                    return CouldNotRun("the interpreter did not answer", output=self.output)
                self._poll(selector, listen, self._patience(deadline, cancel, ended))
                if self._report is not None or self._refusal is not None:
                    return self._conclude()
                # A program that closes the wire may go on: its report then comes as a file.
                if self._has_ended():
                    # What the process wrote before it ended may still be on its way.
                    ended = ended or now
                    if now - ended > 0.3 or self.endpoint not in selector.get_map():
                        self._drain(selector, listen)
                        return self._conclude()

    def _patience(self, deadline: float | None, cancel: threading.Event | None, ended: float) -> float:
        limit = 0.05 if ended else 0.1 if cancel is not None else 0.5
        if deadline is not None:
            limit = min(limit, max(0.0, deadline - time.monotonic()) + 0.005)
        return limit

    def _poll(self, selector: selectors.BaseSelector, listen: Listener | None, patience: float) -> None:
        """Reads what is there."""
        for key, _ in selector.select(patience):
            if key.data == "wire":
                try:
                    data = self.endpoint.recv(_READ_SIZE)
                except OSError:
                    data = b""
                if not data:
                    selector.unregister(self.endpoint)
                    continue
                for message in self._decoder.feed(data):
                    if has_shape(message):
                        self._hear(message, listen)
            else:
                self._read_output(selector, int(key.data))

    def _drain(self, selector: selectors.BaseSelector, listen: Listener | None) -> None:
        end = time.monotonic() + 0.2
        while selector.get_map() and time.monotonic() < end:
            before = len(selector.get_map())
            if not selector.select(0.01):
                return
            self._poll(selector, listen, 0)
            if len(selector.get_map()) < before and not selector.get_map():
                return

    def _read_output(self, selector: selectors.BaseSelector, index: int) -> None:
        stream = self.outputs[index]
        try:
            data = channel.read(stream)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            selector.unregister(stream)
            return
        target = self.streams.stdout if index == 0 else self.streams.stderr
        if target is not None:
            _write_all(target, data)
        self._tail += data
        if len(self._tail) > 2 * self.streams.kept:
            del self._tail[: -self.streams.kept]

    def _hear(self, message: dict[str, Any], listen: Listener | None) -> None:
        kind = message["kind"]
        if kind == wire.HELLO:
            self.group = self.group or int(message["pid"])
        elif kind == wire.STARTED:
            self._started = True
        elif kind == wire.PROGRESS and listen is not None:
            listen(Progress(message["backwards"], message["steps"], message["faults"], message["seconds"]))
        elif kind == wire.PARTIAL:
            self._partial = coded(message)
        elif kind == wire.REPORT:
            self._report = coded(message)
        elif kind == wire.REFUSED:
            self._refusal = message
        elif kind == wire.EXITED:
            self.status = int(message["status"])

    @property
    def output(self) -> str:
        """The end of what the program printed."""
        return bytes(self._tail[-self.streams.kept :]).decode("utf-8", "replace")

    def _has_ended(self) -> bool:
        if self.process is not None and self.status is None:
            self.status = self.process.poll()
        return self.status is not None

    def _conclude(self) -> Outcome:
        report = self._report if self._report is not None else self._report_left_behind()
        if report is not None:
            return (
                Raised(report, self.output) if report["error"] is not None else Observed(report, self.output)
            )
        if self._refusal is not None:
            return CouldNotRun(str(self._refusal["text"]), str(self._refusal["reason"]), self.output)
        self._wait(_GRACE)
        if self._decoder.foreign_version and not self._started:
            return CouldNotRun(
                f"the agent speaks protocol {self._decoder.foreign_version}, not {wire.PROTOCOL}"
            )
        if self.status == wire.TOO_OLD and not self._started:
            return CouldNotRun(
                "this Python is too old for the probe (3.9 is the oldest)", "python", self.output
            )
        if not self._started:
            return CouldNotRun(f"the agent did not start: {_status_text(self.status)}", output=self.output)
        return Died(_status_text(self.status), self._partial, self.output)

    def _report_left_behind(self) -> Report | None:
        path = Path(self.folder) / "report.bin"
        if not self._started or not path.is_file():
            return None
        messages = wire.Decoder(self._key).feed(path.read_bytes())
        for message in messages:
            if message["kind"] == wire.REPORT and has_shape(message):
                return coded(message)
        return None

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._has_ended() and time.monotonic() < end:
            time.sleep(0.01)

    def kill(self) -> None:
        """Ends the agent, its process group, and children that left the group."""
        group = self.group or (self.process.pid if self.process is not None else 0)
        if group:
            _kill_below(group)
            channel.end_group(group)
        kill_marked(self.mark)
        if self.process is not None:
            with contextlib.suppress(OSError):
                self.process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)


def launch(request: ProbeRequest, folder: str, streams: Streams, mode: str = "once") -> Conversation:
    """A new interpreter with the agent, which waits for its request; a `spare` imports torch while it waits."""
    mark = uuid.uuid4().hex
    line = channel.start(
        [*request.launcher, request.python, BOOT],
        mode,
        child_environment(request, mark),
        request.directory or None,
        _START_LIMIT,
    )
    key = wire.new_key()
    conversation = Conversation(line.endpoint, line.lifeline, line.outputs, streams, folder, mark, key)
    conversation.process = line.process
    conversation.group = line.process.pid
    conversation.send(wire.KEY, {"key": key})
    return conversation


def child_environment(request: ProbeRequest, mark: str) -> dict[str, str]:
    """The environment of the user, with the mark by which we find what the program started."""
    environment = {**os.environ, **request.environment, wire.MARK_VARIABLE: mark, "PYTHONUNBUFFERED": "1"}
    environment.pop("PYTHONSAFEPATH", None)
    if request.threads:
        environment.setdefault("OMP_NUM_THREADS", str(request.threads))
    return environment


def _kill_below(root: int) -> None:
    """Ends the processes below one that still lives, and what they start while they are being ended."""
    end = time.monotonic() + _GRACE
    while (below := descendants_of(root)) and time.monotonic() < end:
        for pid in below:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def kill_marked(mark: str) -> None:
    """Ends processes that carry the mark of this probe and have left its group; Linux only."""
    if not sys.platform.startswith("linux") or not mark:
        return
    needle = f"{wire.MARK_VARIABLE}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if needle in (entry / "environ").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            time.sleep(0.005)
        except OSError:
            return


def _status_text(status: int | None) -> str:
    if status is None:
        return "the process ended without a report"
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = str(-status)
        return f"the process was ended by {name}"
    return f"the process left with exit status {status} and no report"
