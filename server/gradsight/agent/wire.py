"""The messages between the probe's host and the agent: framed, checked and versioned.

A *frame* is a fixed header (magic, protocol version, payload length, checksum) and a JSON object with the key `kind`.
A reader skips whatever is not a frame: bytes that other code wrote into the channel are dropped, never parsed.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import zlib
from collections.abc import Iterator
from typing import Any

PROTOCOL = 2
MAGIC = b"\xf5GSw"
_HEADER = struct.Struct("!4sHII")
_LARGEST = 256 * 1024 * 1024

# Kinds of messages.  Host to agent: RUN, CANCEL.  Agent to host: the others.
RUN = "run"
CANCEL = "cancel"
HELLO = "hello"
STARTED = "started"
PROGRESS = "progress"
PARTIAL = "partial"
REPORT = "report"
REFUSED = "refused"
EXITED = "exited"

# The environment variables that tell an agent where its host listens.
ADDRESS_VARIABLE = "GRADSIGHT_PROBE_ADDRESS"
MARK_VARIABLE = "GRADSIGHT_PROBE_MARK"

Message = dict[str, Any]


def encode(kind: str, body: Message, version: int = PROTOCOL) -> bytes:
    """One frame."""
    payload = json.dumps({"kind": kind, **body}, separators=(",", ":"), default=str).encode(
        "utf-8", "replace"
    )
    return _HEADER.pack(MAGIC, version, len(payload), zlib.crc32(payload)) + payload


class Decoder:
    """Turns a stream of bytes into messages, whatever the pieces it arrives in."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.skipped = 0
        self.foreign_version = 0

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages completed by these bytes."""
        self._buffer += data
        while True:
            start = self._buffer.find(MAGIC)
            if start < 0:
                self._drop(max(0, len(self._buffer) - len(MAGIC) + 1))
                return
            self._drop(start)
            if len(self._buffer) < _HEADER.size:
                return
            _, version, length, checksum = _HEADER.unpack_from(self._buffer)
            if length > _LARGEST:
                self._drop(1)
                continue
            if len(self._buffer) < _HEADER.size + length:
                return
            payload = bytes(self._buffer[_HEADER.size : _HEADER.size + length])
            if zlib.crc32(payload) != checksum:
                self._drop(1)
                continue
            del self._buffer[: _HEADER.size + length]
            if version != PROTOCOL:
                self.foreign_version = version
                continue
            message = json.loads(payload)
            if isinstance(message, dict) and isinstance(message.get("kind"), str):
                yield message

    def _drop(self, count: int) -> None:
        self.skipped += count
        del self._buffer[:count]


class Channel:
    """The agent's end of the wire.

    It belongs to one process: a forked child that inherits it stays silent, because two writers would mix frames.
    """

    def __init__(self, endpoint: socket.socket) -> None:
        self._endpoint = endpoint
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._decoder = Decoder()

    def send(self, kind: str, body: Message) -> bool:
        """Whether the message left this process."""
        if os.getpid() != self._owner:
            return False
        frame = encode(kind, body)
        with self._lock:
            try:
                self._endpoint.sendall(frame)
            except OSError:
                return False
        return True

    def receive(self) -> Message | None:
        """The next message of the host; None when the host is gone."""
        while True:
            try:
                data = self._endpoint.recv(65536)
            except OSError:
                return None
            if not data:
                return None
            for message in self._decoder.feed(data):
                return message

    def close(self) -> None:
        """Ends the conversation."""
        try:
            self._endpoint.close()
        except OSError:
            return


def connect(address: str) -> socket.socket:
    """Joins a listening host; `address` is `port:token` on the loopback interface."""
    port, token = address.split(":", 1)
    endpoint = socket.create_connection(("127.0.0.1", int(port)), timeout=30)
    endpoint.settimeout(None)
    endpoint.sendall(token.encode("ascii").ljust(32)[:32])
    return endpoint
