"""Many processes: torch's own launcher starts one agent per rank, and their reports become one."""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Sequence
from typing import Any

from gradsight.agent import wire
from gradsight.probe.channel import end_group, of_its_own
from gradsight.probe.host import BOOT, Listener, child_environment, kill_marked, private_folder
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

_START_LIMIT = 180.0


def run(
    request: ProbeRequest,
    count: int,
    streams: Streams,
    listen: Listener | None = None,
    cancel: threading.Event | None = None,
) -> Outcome:
    """Runs the program in `count` ranks and merges what they saw."""
    with private_folder() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        token = secrets.token_hex(16)
        mark = uuid.uuid4().hex
        port = server.getsockname()[1]
        environment = child_environment(request, mark)
        environment[wire.ADDRESS_VARIABLE] = f"{port}:{token}"
        command = [
            request.python, "-m", "torch.distributed.run", "--standalone", "--nnodes=1",
            f"--nproc-per-node={count}", BOOT, "rank",
        ]  # fmt: skip
        try:
            with open(os.path.join(folder, "launcher.log"), "w+b") as log:
                process: subprocess.Popen[bytes] = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=streams.stdout if streams.stdout is not None else log,
                    stderr=log,
                    env=environment,
                    cwd=request.directory or None,
                    **of_its_own(),  # type: ignore[call-overload]
                )
                gathering = _Gathering(server, token, request, folder, count, listen)
                try:
                    return gathering.follow(process, cancel, log)
                finally:
                    gathering.close()
                    end_group(process.pid)
                    kill_marked(mark)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(5)
        except OSError as error:
            return CouldNotRun(f"the interpreter {request.python} cannot be started", str(error))


class _Rank:
    """One connected agent."""

    def __init__(self, endpoint: socket.socket) -> None:
        self.endpoint = endpoint
        self.key = wire.new_key()
        self.decoder = wire.Decoder(self.key)
        self.number = -1
        self.report: Report | None = None
        self.partial: Report | None = None
        self.refusal = ""
        self.progress = Progress()


class _Gathering:
    """Accepts the ranks and collects their reports."""

    def __init__(
        self,
        server: socket.socket,
        token: str,
        request: ProbeRequest,
        folder: str,
        count: int,
        listen: Listener | None,
    ) -> None:
        self.server = server
        self.token = token.encode()
        self.request = request
        self.folder = folder
        self.count = count
        self.listen = listen
        self.ranks: list[_Rank] = []
        self.selector = selectors.DefaultSelector()
        self.selector.register(server, selectors.EVENT_READ, None)

    def follow(self, process: subprocess.Popen[bytes], cancel: threading.Event | None, log: Any) -> Outcome:
        begun = time.monotonic()
        deadline: float | None = None
        while True:
            if cancel is not None and cancel.is_set():
                return Cancelled(self._merged())
            if deadline is None and self.request.timeout and len(self.ranks) == self.count:
                deadline = time.monotonic() + self.request.timeout + 5
            now = time.monotonic()
            if deadline is not None and now > deadline:
                return TimedOut(self.request.timeout, self._merged())
            if not self.ranks and now - begun > _START_LIMIT:
                return CouldNotRun("the ranks did not start", output=_tail(log))
            self._poll(0.1)
            refused = [rank.refusal for rank in self.ranks if rank.refusal]
            if refused:
                return CouldNotRun(refused[0], output=_tail(log))
            if len(self.ranks) == self.count and all(rank.report is not None for rank in self.ranks):
                return self._conclude(log)
            if process.poll() is not None:
                self._poll(0.3)
                if any(rank.report is not None for rank in self.ranks):
                    return self._conclude(log)
                if not self.ranks:
                    return CouldNotRun(
                        f"the launcher ended with status {process.returncode}", output=_tail(log)
                    )
                return Died(
                    f"the ranks ended without a report (launcher status {process.returncode})",
                    None,
                    _tail(log),
                )

    def _poll(self, patience: float) -> None:
        for key, _ in self.selector.select(patience):
            if key.data is None:
                self._accept()
                continue
            rank: _Rank = key.data
            try:
                data = rank.endpoint.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                self.selector.unregister(rank.endpoint)
                continue
            for message in rank.decoder.feed(data):
                if has_shape(message):
                    self._hear(rank, message)

    def _accept(self) -> None:
        endpoint, _ = self.server.accept()
        endpoint.settimeout(5)
        try:
            given = b""
            while len(given) < 32:
                piece = endpoint.recv(32 - len(given))
                if not piece:
                    break
                given += piece
        except OSError:
            given = b""
        # A program knows the token from its environment: nobody is let in once every rank is here.
        if len(self.ranks) >= self.count or not secrets.compare_digest(given.strip(), self.token):
            endpoint.close()
            return
        endpoint.settimeout(None)
        rank = _Rank(endpoint)
        self.ranks.append(rank)
        self.selector.register(endpoint, selectors.EVENT_READ, rank)
        endpoint.sendall(wire.encode(wire.KEY, {"key": rank.key}))
        endpoint.sendall(wire.encode(wire.RUN, {"request": self.request.as_message(self.folder)}))

    def _hear(self, rank: _Rank, message: dict[str, Any]) -> None:
        kind = message["kind"]
        if kind == wire.HELLO:
            rank.number = int(message.get("rank", -1))
        elif kind == wire.PROGRESS:
            rank.progress = Progress(
                message["backwards"], message["steps"], message["faults"], message["seconds"], rank.number
            )
            if self.listen is not None and rank.number <= 0:
                self.listen(rank.progress)
        elif kind == wire.REPORT:
            rank.report = coded(message)
        elif kind == wire.PARTIAL:
            rank.partial = coded(message)
        elif kind == wire.REFUSED:
            rank.refusal = str(message["text"])

    def _conclude(self, log: Any) -> Outcome:
        merged = self._merged()
        assert merged is not None
        missing = [rank.number for rank in self.ranks if rank.report is None]
        if missing:
            merged = {
                **merged,
                "notes": [*merged["notes"], f"no report from rank {', '.join(map(str, missing))}"],
            }
        if merged["error"] is not None:
            return Raised(merged, _tail(log))
        return Observed(merged, _tail(log))

    def _merged(self) -> Report | None:
        reports = [
            (rank.number, report)
            for rank in sorted(self.ranks, key=lambda item: item.number)
            if (report := rank.report or rank.partial) is not None
        ]
        return merge(reports) if reports else None

    def close(self) -> None:
        self.selector.close()
        for rank in self.ranks:
            rank.endpoint.close()


def merge(reports: Sequence[tuple[int, Report]]) -> Report:
    """One report of many: each fault once, with the ranks that saw it."""
    faults: dict[tuple[Any, ...], dict[str, Any]] = {}
    notes: list[str] = []
    for number, report in reports:
        for fault in report["faults"]:
            key = (fault["code"], fault["filename"], fault["location"]["row"])
            entry = faults.setdefault(key, {**fault, "rank": []})
            entry["rank"].append(number)
        for note in report["notes"]:
            if note not in notes:
                notes.append(note)
    first = reports[0][1]
    # The error that explains the others is the one with a blame; a rank that lost its peers only complains.
    errors = [report["error"] for _, report in reports if report["error"] is not None]
    blamed = [
        report["error"]
        for _, report in reports
        if report["error"] is not None and any(fault["severity"] == "error" for fault in report["faults"])
    ]
    return {
        **first,
        "error": (blamed or errors or [None])[0],
        "faults": list(faults.values()),
        "notes": notes,
        "graph": next((report["graph"] for _, report in reports if report["graph"] is not None), None),
        "seconds": max(report["seconds"] for _, report in reports),
    }


def _tail(log: Any) -> str:
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - 16_384))
    return str(log.read().decode("utf-8", "replace"))
