"""How the server is reached: standard input and output, or one TCP connection; and how it ends.

A thread of its own reads, and hands everything that arrived at once to the event loop in one piece, so that a burst of
edits is applied before any of them is analysed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import Protocol

from gradsight.lsp.frames import FrameReader, frame

log = logging.getLogger(__name__)
CHUNK = 256 * 1024


class Talks(Protocol):
    """One side of a conversation."""

    on_exit: Callable[[int], None]

    def receive(self, body: bytes) -> None: ...

    def set_writer(self, writer: Outlet, include_headers: bool) -> None: ...


class Outlet:
    """Where the bodies of our messages go; a client that went away hears nothing more."""

    def __init__(self, send: Callable[[bytes], None], on_loss: Callable[[], None]) -> None:
        self._send = send
        self._on_loss = on_loss
        self._is_open = True

    def write(self, body: bytes) -> None:
        """Send one message."""
        if not self._is_open:
            return
        try:
            self._send(frame(body))
        except OSError:
            self.close()
            self._on_loss()

    def close(self) -> None:
        """Nothing more is sent."""
        self._is_open = False


def serve_stdio(conversation: Talks) -> int:
    """Talk over standard input and output until the client says `exit` or goes away.

    Nothing but messages may reach the client: whatever else is printed goes to standard error.
    """
    sys.stdout.flush()
    replies = os.dup(1)
    os.dup2(2, 1)

    def send(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(replies, view) :]

    return asyncio.run(_converse(conversation, lambda: os.read(0, CHUNK), send))


def serve_tcp(conversation: Talks, host: str, port: int) -> int:
    """Talk to the first client that connects."""
    with socket.create_server((host, port)) as listener:
        chosen = listener.getsockname()
        print(f"gradsight listens on {chosen[0]}:{chosen[1]}", file=sys.stderr, flush=True)
        connection, _ = listener.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return asyncio.run(_converse(conversation, lambda: connection.recv(CHUNK), connection.sendall))


async def _converse(conversation: Talks, receive: Callable[[], bytes], send: Callable[[bytes], None]) -> int:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def end(code: int) -> None:
        if not ended.done():
            ended.set_result(code)

    def handle(bodies: list[bytes]) -> None:
        for body in bodies:
            if ended.done():
                return
            try:
                conversation.receive(body)
            except Exception:
                log.exception("a message could not be handled")

    def read_all() -> None:
        frames = FrameReader()
        while True:
            try:
                data = receive()
            except OSError:
                data = b""
            # The loop may be closed already.
            with contextlib.suppress(RuntimeError):
                if not data:
                    loop.call_soon_threadsafe(end, 1)
                    return
                if bodies := frames.feed(data):
                    loop.call_soon_threadsafe(handle, bodies)

    outlet = Outlet(send, lambda: end(1))
    conversation.set_writer(outlet, include_headers=False)
    conversation.on_exit = end
    threading.Thread(target=read_all, name="gradsight-reader", daemon=True).start()
    code = await ended
    outlet.close()
    return code


def leave(code: int) -> None:
    """End the process at once: threads that still compute or wait for input hold nothing up."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)
