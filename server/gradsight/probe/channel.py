"""How an agent is reached: over descriptors that it inherits, or over the loopback interface where there is no such thing.

A *line* is what connects us with one agent: the socket on which both talk, a *lifeline* whose end tells the agent that we are
gone, and the two streams that the program prints to.  Windows passes no descriptors on and selects among sockets only: there
the agent dials back twice with a secret of this line, and what the program prints is carried into sockets by threads.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from gradsight.agent import wire

_NO_WINDOW = 0x08000000
_NEW_GROUP = 0x00000200
_READ_SIZE = 1 << 16

Stream = int | socket.socket
"""A descriptor, or a socket where descriptors cannot be waited for."""


@dataclass
class AgentLine:
    """The connection with a running agent."""

    process: subprocess.Popen[bytes]
    endpoint: socket.socket
    lifeline: Stream
    outputs: tuple[Stream, Stream]


def inherits_descriptors() -> bool:
    """Whether a child can be given open descriptors."""
    return os.name != "nt"


def start(
    command: Sequence[str], mode: str, environment: Mapping[str, str], directory: str | None, limit: float
) -> AgentLine:
    """Starts the agent; an `OSError` says that it cannot be started, or that it has not answered within `limit` seconds."""
    if inherits_descriptors():
        return _by_descriptors([*command, mode], environment, directory)
    return _by_loopback([*command, mode], environment, directory, limit)


def read(stream: Stream) -> bytes:
    """What a stream has to say; empty at its end."""
    return stream.recv(_READ_SIZE) if isinstance(stream, socket.socket) else os.read(stream, _READ_SIZE)


def unblock(stream: Stream) -> None:
    """Reading this never waits."""
    if isinstance(stream, socket.socket):
        stream.setblocking(False)
    else:
        os.set_blocking(stream, False)


def close(stream: Stream) -> None:
    """Ends a stream."""
    with contextlib.suppress(OSError):
        if isinstance(stream, socket.socket):
            stream.close()
        else:
            os.close(stream)


def end_group(leader: int) -> None:
    """Ends a process and what it started."""
    if inherits_descriptors():
        with contextlib.suppress(OSError):
            os.killpg(leader, signal.SIGKILL)
        return
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            ["taskkill", "/T", "/F", "/PID", str(leader)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=10,
            check=False,
        )


def of_its_own() -> dict[str, bool | int]:
    """What `Popen` is told so that the child does not share our group, our signals or our window."""
    if inherits_descriptors():
        return {"start_new_session": True}
    return {"creationflags": _NEW_GROUP | _NO_WINDOW if sys.platform == "win32" else 0}


def _by_descriptors(command: list[str], environment: Mapping[str, str], directory: str | None) -> AgentLine:
    ours, theirs = socket.socketpair()
    lifeline_read, lifeline = os.pipe()
    out_read, out_write = os.pipe()
    error_read, error_write = os.pipe()
    try:
        process = subprocess.Popen(
            [*command, str(theirs.fileno()), str(lifeline_read)],
            stdin=subprocess.DEVNULL,
            stdout=out_write,
            stderr=error_write,
            pass_fds=(theirs.fileno(), lifeline_read),
            start_new_session=True,
            env=environment,
            cwd=directory,
        )
    except OSError:
        for descriptor in (lifeline, out_read, error_read):
            os.close(descriptor)
        ours.close()
        raise
    finally:
        theirs.close()
        for descriptor in (lifeline_read, out_write, error_write):
            os.close(descriptor)
    return AgentLine(process, ours, lifeline, (out_read, error_read))


def _by_loopback(
    command: list[str], environment: Mapping[str, str], directory: str | None, limit: float
) -> AgentLine:
    with socket.create_server(("127.0.0.1", 0)) as server:
        token = secrets.token_hex(16)
        address = f"{server.getsockname()[1]}:{token}"
        process: subprocess.Popen[bytes] = subprocess.Popen(
            [*command, wire.BY_ADDRESS],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, wire.ADDRESS_VARIABLE: address},
            cwd=directory,
            **of_its_own(),  # type: ignore[call-overload]
        )
        assert process.stdout is not None
        assert process.stderr is not None
        outputs = _carried(process.stdout), _carried(process.stderr)
        try:
            endpoint, lifeline = _dialled(server, token.encode(), process, limit)
        except OSError:
            end_group(process.pid)
            process.kill()
            process.wait()
            for stream in outputs:
                close(stream)
            raise
    return AgentLine(process, endpoint, lifeline, outputs)


def _dialled(
    server: socket.socket, token: bytes, process: subprocess.Popen[bytes], limit: float
) -> tuple[socket.socket, socket.socket]:
    """The two connections of the agent, in the order in which it makes them; whoever does not know the token is sent away."""
    found: list[socket.socket] = []
    end = time.monotonic() + limit
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(server, selectors.EVENT_READ)
            while len(found) < 2:
                if selector.select(0.1):
                    caller, _ = server.accept()
                    if _knows(caller, token):
                        found.append(caller)
                    else:
                        caller.close()
                elif process.poll() is not None:
                    if process.returncode == wire.TOO_OLD:
                        # It cannot dial, and its status says why: the line is as dead as it is.
                        return _dead_end(), _dead_end()
                    raise OSError(f"the agent left with exit status {process.returncode}")
                elif time.monotonic() > end:
                    raise OSError("the agent did not answer")
    except OSError:
        for each in found:
            each.close()
        raise
    return found[0], found[1]


def _dead_end() -> socket.socket:
    ours, theirs = socket.socketpair()
    theirs.close()
    return ours


def _knows(caller: socket.socket, token: bytes) -> bool:
    caller.settimeout(5)
    given = b""
    try:
        while len(given) < wire.TOKEN_SIZE and (piece := caller.recv(wire.TOKEN_SIZE - len(given))):
            given += piece
        caller.settimeout(None)
    except OSError:
        return False
    return secrets.compare_digest(given.strip(), token)


def _carried(pipe: IO[bytes]) -> socket.socket:
    """A socket that says what comes out of a pipe."""
    ours, theirs = socket.socketpair()

    def carry() -> None:
        with contextlib.suppress(OSError), theirs, pipe:
            while data := os.read(pipe.fileno(), _READ_SIZE):
                theirs.sendall(data)

    threading.Thread(target=carry, daemon=True, name="gradsight-output").start()
    return ours
