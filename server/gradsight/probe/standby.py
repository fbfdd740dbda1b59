"""A warm interpreter beside the server, so that the second probe starts at once.

It is bound to one interpreter in one state: when the installation changes, it is dropped and a new one is started.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradsight.agent import wire
from gradsight.probe import host
from gradsight.probe.host import BOOT, Conversation, Listener, child_environment, private_folder
from gradsight.probe.outcome import CouldNotRun, Outcome, Streams
from gradsight.probe.request import ProbeRequest


@dataclass(frozen=True, slots=True)
class Environment:
    """What a warm interpreter depends on: the executable and the state of its installed packages."""

    python: str
    stamps: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, python: str) -> Environment:
        """The present state of an interpreter and of its installed packages."""
        executable = Path(python)
        candidates = [executable, executable.parent.parent / "pyvenv.cfg"]
        candidates += sorted(executable.parent.parent.glob("lib/python*/site-packages"))
        candidates += sorted(executable.parent.parent.glob("lib/python*/site-packages/torch/version.py"))
        stamps = []
        for path in candidates:
            with contextlib.suppress(OSError):
                stamps.append((str(path), path.stat().st_mtime_ns))
        return cls(python, tuple(stamps))


class Standby:
    """Keeps one warm interpreter and runs probes in its children; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._zygote: _Zygote | None = None
        self._spare: _Spare | None = None

    def warm(self, python: str) -> None:
        """Starts warming up, without waiting."""
        with self._lock:
            if _can_fork():
                self._ensure(python)
            else:
                self._prepare_spare(python)

    def run(
        self,
        request: ProbeRequest,
        streams: Streams | None = None,
        listen: Listener | None = None,
        cancel: threading.Event | None = None,
    ) -> Outcome:
        """Runs a probe in the warm interpreter, or in a fresh one where that is not possible."""
        if request.threads != 1 or request.launcher:
            return host.run(request, streams, listen, cancel)
        if not _can_fork():
            return self._run_in_spare(request, streams, listen, cancel)
        with self._lock:
            zygote = self._ensure(request.python)
        if zygote is None or not zygote.wait_until_ready(cancel):
            return host.run(request, streams, listen, cancel)
        with private_folder() as folder:
            try:
                conversation = zygote.fork(request, folder, streams or Streams())
            except OSError:
                self.drop()
                return host.run(request, streams, listen, cancel)
            with conversation:
                outcome = conversation.follow(request.timeout, listen, cancel)
        if isinstance(outcome, CouldNotRun) and not zygote.alive:
            # The warm interpreter died before it could fork: nothing of the program has run.
            self.drop()
            return host.run(request, streams, listen, cancel)
        return outcome

    def _run_in_spare(
        self,
        request: ProbeRequest,
        streams: Streams | None,
        listen: Listener | None,
        cancel: threading.Event | None,
    ) -> Outcome:
        """Runs a probe in an interpreter that was started for it before it was asked for, and starts the next one."""
        with self._lock:
            spare, self._spare = self._spare, None
        try:
            if spare is None or not spare.fits(request):
                if spare is not None:
                    spare.close()
                return host.run(request, streams, listen, cancel)
            with private_folder() as folder, spare.conversation as conversation:
                conversation.folder, conversation.streams = folder, streams or Streams()
                conversation.send(wire.RUN, {"request": request.as_message(folder)})
                return conversation.follow(request.timeout, listen, cancel)
        finally:
            with self._lock:
                self._prepare_spare(request.python)

    def _prepare_spare(self, python: str) -> None:
        if self._spare is None:
            with contextlib.suppress(OSError):
                self._spare = _Spare(Environment.of(python))

    def drop(self) -> None:
        """Ends the warm interpreter."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None
        if self._spare is not None:
            self._spare.close()
            self._spare = None

    def _ensure(self, python: str) -> _Zygote | None:
        wanted = Environment.of(python)
        if self._zygote is not None and (self._zygote.environment != wanted or not self._zygote.alive):
            self._drop()
        if self._zygote is None and _can_fork():
            with contextlib.suppress(OSError):
                self._zygote = _Zygote(wanted)
        return self._zygote


def _can_fork() -> bool:
    """Forking after torch was imported is tried on Linux only; elsewhere a spare interpreter waits for each probe."""
    return sys.platform.startswith("linux")


class _Spare:
    """A process with torch imported that waits for one request."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.conversation = host.launch(ProbeRequest(environment.python), "", Streams(), "spare")

    def fits(self, request: ProbeRequest) -> bool:
        """Whether it can run this request: the same interpreter in the same state, and nothing special around it."""
        process = self.conversation.process
        is_alive = process is not None and process.poll() is None
        return is_alive and not request.environment and Environment.of(request.python) == self.environment

    def close(self) -> None:
        """Ends the process."""
        self.conversation.__exit__()


class _Zygote:
    """The warm process and its control socket."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        ours, theirs = socket.socketpair()
        self._endpoint = ours
        self._probes = 0
        self._ready = threading.Event()
        self._waiting: dict[int, _Fork] = {}
        request = ProbeRequest(environment.python)
        try:
            self._process = subprocess.Popen(
                [environment.python, BOOT, "zygote", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                env=child_environment(request, ""),
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self._ended = threading.Event()
        threading.Thread(target=self._listen, daemon=True, name="gradsight-standby").start()

    @property
    def alive(self) -> bool:
        return not self._ended.is_set()

    def wait_until_ready(self, cancel: threading.Event | None, limit: float = 60.0) -> bool:
        """Whether the interpreter has warmed up."""
        waited = 0.0
        while waited < limit and self.alive and not (cancel is not None and cancel.is_set()):
            if self._ready.wait(0.05):
                return True
            waited += 0.05
        return self._ready.is_set() and self.alive

    def fork(self, request: ProbeRequest, folder: str, streams: Streams) -> Conversation:
        """A child of the warm interpreter that runs this request."""
        ours, theirs = socket.socketpair()
        lifeline_read, lifeline = os.pipe()
        out_read, out_write = os.pipe()
        error_read, error_write = os.pipe()
        mark = uuid.uuid4().hex
        self._probes += 1
        number = self._probes
        key = wire.new_key()
        conversation = _Fork(ours, lifeline, (out_read, error_read), streams, folder, mark, key)
        self._waiting[number] = conversation
        body = {
            "probe": number,
            "key": key,
            "request": request.as_message(folder),
            "environment": child_environment(request, mark),
        }
        theirs_all = [theirs.fileno(), lifeline_read, out_write, error_write]
        try:
            frame = wire.encode(wire.RUN, body)
            sent = socket.send_fds(self._endpoint, [frame], theirs_all)
            if sent < len(frame):
                self._endpoint.sendall(frame[sent:])
        except OSError:
            conversation.__exit__()
            raise
        finally:
            theirs.close()
            for descriptor in (lifeline_read, out_write, error_write):
                os.close(descriptor)
        return conversation

    def _listen(self) -> None:
        decoder = wire.Decoder()
        while True:
            try:
                data = self._endpoint.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                break
            for message in decoder.feed(data):
                self._hear(message)
        self._ended.set()
        for conversation in list(self._waiting.values()):
            conversation.status = conversation.status if conversation.status is not None else -9

    def _hear(self, message: Mapping[str, Any]) -> None:
        kind = message["kind"]
        if kind == wire.HELLO:
            self._ready.set()
        elif kind == wire.STARTED and (conversation := self._waiting.get(int(message["probe"]))) is not None:
            conversation.group = int(message["pid"])
        elif (
            kind == wire.EXITED
            and (conversation := self._waiting.pop(int(message["probe"]), None)) is not None
        ):
            conversation.status = int(message["status"])

    def close(self) -> None:
        """Ends the warm process; running probes end with their own conversations."""
        with contextlib.suppress(OSError):
            self._endpoint.shutdown(socket.SHUT_RDWR)
        self._endpoint.close()
        with contextlib.suppress(OSError):
            self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)


class _Fork(Conversation):
    """A conversation with a child of the zygote, whose exit status the zygote reports."""

    def _has_ended(self) -> bool:
        return self.status is not None
