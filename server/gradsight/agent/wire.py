"""The messages between the probe's host and the agent: framed, sealed and versioned.

A *frame* is a fixed header (magic, protocol version, payload length, seal), a JSON object with the key `kind`, and the
seal of that.  A *seal* is a hash under a key that the host gives to the agent before the program starts: whatever else
comes over the wire was not written by the agent.  A reader skips what is not a sealed frame, and never parses it.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

PROTOCOL = 2
MAGIC = b"\xf5GSw"
_START = struct.Struct("!4sHI")
_SEAL_SIZE = 16
_HEADER_SIZE = _START.size + _SEAL_SIZE
_LARGEST = 256 * 1024 * 1024
_HERE = os.path.dirname(os.path.abspath(__file__))
# Programs replace what they like in the modules of the library: these are the ones that were there before.
_HASH = hashlib.blake2b
_ENCODER = json.JSONEncoder(separators=(",", ":"), default=str)
_GET_PROCESS, _STATE_OF, _CALLER = os.getpid, os.fstat, sys._getframe

# Kinds of messages.  Host to agent: KEY, RUN, CANCEL.  Agent to host: the others.
KEY = "key"
RUN = "run"
CANCEL = "cancel"
HELLO = "hello"
STARTED = "started"
PROGRESS = "progress"
PARTIAL = "partial"
REPORT = "report"
REFUSED = "refused"
EXITED = "exited"

TOO_OLD = 64
"""The exit status of an interpreter that cannot even import these messages."""
BY_ADDRESS = "-"
"""Stands for the descriptors in the arguments of an agent that dials its host."""
TOKEN_SIZE = 32

# The environment variables that tell an agent where its host listens.
ADDRESS_VARIABLE = "GRADSIGHT_PROBE_ADDRESS"
MARK_VARIABLE = "GRADSIGHT_PROBE_MARK"

Message = dict[str, Any]


Seal = Callable[[bytes], bytes]


def new_key() -> str:
    """A key for one conversation, as it is written into a message."""
    return os.urandom(32).hex()


def sealing(key: str) -> Seal:
    """The function that seals bytes under a key; without a key a seal is only a checksum."""
    secret = bytes.fromhex(key)

    def seal(data: bytes) -> bytes:
        return _HASH(data, key=secret, digest_size=_SEAL_SIZE).digest()

    return seal


_UNSEALED = sealing("")


def encode(kind: str, body: Message, version: int = PROTOCOL, seal: Seal = _UNSEALED) -> bytes:
    """One frame."""
    payload = _ENCODER.encode({"kind": kind, **body}).encode("utf-8", "replace")
    start = _START.pack(MAGIC, version, len(payload))
    return start + seal(start) + payload + seal(payload)


class Decoder:
    """Turns a stream of bytes into messages, whatever the pieces it arrives in."""

    def __init__(self, key: str = "") -> None:
        self._buffer = bytearray()
        self._seal = sealing(key)
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
            if len(self._buffer) < _HEADER_SIZE:
                return
            _, version, length = _START.unpack_from(self._buffer)
            if version != PROTOCOL:
                self.foreign_version = version
            # Only a length under our seal is worth waiting for.
            is_ours = (
                self._seal(bytes(self._buffer[: _START.size])) == self._buffer[_START.size : _HEADER_SIZE]
            )
            if version != PROTOCOL or not is_ours or length > _LARGEST:
                self._drop(1)
                continue
            end = _HEADER_SIZE + length
            if len(self._buffer) < end + _SEAL_SIZE:
                return
            payload = bytes(self._buffer[_HEADER_SIZE:end])
            if self._seal(payload) != self._buffer[end : end + _SEAL_SIZE]:
                self._drop(1)
                continue
            del self._buffer[: end + _SEAL_SIZE]
            message = _parsed(payload)
            if isinstance(message, dict) and isinstance(message.get("kind"), str):
                yield message

    def _drop(self, count: int) -> None:
        self.skipped += count
        del self._buffer[:count]


def _parsed(payload: bytes) -> Any:
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        return None


class Channel:
    """The agent's end of the wire.

    It belongs to one process: a forked child that inherits it stays silent, because two writers would mix frames.  Once
    it is sealed it belongs to the agent: other code of the process that gets hold of it cannot send.
    """

    def __init__(self, endpoint: socket.socket, key: str = "") -> None:
        self._endpoint = endpoint
        self._owner = _GET_PROCESS()
        self._identity = _identity_of(endpoint)
        self._lock = threading.Lock()
        self._decoder = Decoder()
        self._is_sealed = bool(key)
        self._seal = sealing(key)

    def take_key(self) -> bool:
        """Waits for the key of this conversation; False when the host has none to give."""
        message = self.receive()
        if message is None or message["kind"] != KEY:
            return False
        self._seal = sealing(str(message["key"]))
        self._is_sealed = True
        return True

    def send(self, kind: str, body: Message) -> bool:
        """Whether the message left this process."""
        if _GET_PROCESS() != self._owner or not self._may_send(_CALLER(1).f_code.co_filename):
            return False
        frame = encode(kind, body, seal=self._seal)
        with self._lock:
            try:
                # The program may have closed the descriptor and opened something of its own under the same number.
                if _identity_of(self._endpoint) != self._identity:
                    return False
                self._endpoint.sendall(frame)
            except OSError:
                return False
        return True

    def leave(self, path: str, kind: str, body: Message) -> None:
        """Puts a message into a file, for a host that the wire no longer reaches."""
        if self._may_send(_CALLER(1).f_code.co_filename):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                rest = memoryview(encode(kind, body, seal=self._seal))
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            finally:
                os.close(descriptor)

    def _may_send(self, filename: str) -> bool:
        return not self._is_sealed or os.path.dirname(os.path.abspath(filename)) == _HERE

    def receive(self) -> Message | None:
        """The next message of the host; None when the host is gone."""
        data = b""
        while True:
            for message in self._decoder.feed(data):
                return message
            try:
                data = self._endpoint.recv(65536)
            except OSError:
                return None
            if not data:
                return None

    def close(self) -> None:
        """Ends the conversation."""
        try:
            self._endpoint.close()
        except OSError:
            return


def _identity_of(endpoint: socket.socket) -> tuple[int, int] | None:
    """What a descriptor stands for; None where that cannot be told."""
    try:
        state = _STATE_OF(endpoint.fileno())
    except (OSError, ValueError):
        return None
    return state.st_dev, state.st_ino


def private(descriptor: int) -> int:
    """Moves a descriptor out of the way of programs that use low numbers; children do not inherit it."""
    try:
        import fcntl

        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 200)
    except (ImportError, OSError):
        os.set_inheritable(descriptor, False)
        return descriptor
    os.close(descriptor)
    return moved


def connect(address: str) -> socket.socket:
    """Joins a listening host; `address` is `port:token` on the loopback interface."""
    port, token = address.split(":", 1)
    endpoint = socket.create_connection(("127.0.0.1", int(port)), timeout=30)
    endpoint.settimeout(None)
    endpoint.sendall(token.encode("ascii").ljust(TOKEN_SIZE)[:TOKEN_SIZE])
    return endpoint
