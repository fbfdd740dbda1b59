"""Messages on a byte stream: a header that tells the length, an empty line, and so many bytes of JSON.

A stream that is out of step is read on until the next header that tells a length; nothing that arrives ends the reader.
"""

from __future__ import annotations

import re

_LENGTH = re.compile(rb"content-length\s*:\s*(\d+)\s*\Z", re.IGNORECASE)
LONGEST_HEADER = 64 * 1024
LONGEST_BODY = 512 * 1024 * 1024


class FrameReader:
    """Cuts what arrives into the bodies of messages."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._length = -1

    def feed(self, data: bytes) -> list[bytes]:
        """The bodies that are complete with these bytes."""
        self._pending += data
        bodies: list[bytes] = []
        while True:
            if self._length < 0 and not self._read_header():
                return bodies
            if len(self._pending) < self._length:
                return bodies
            bodies.append(bytes(self._pending[: self._length]))
            del self._pending[: self._length]
            self._length = -1

    def _read_header(self) -> bool:
        """Take one header off the pending bytes; False while it is not complete."""
        while True:
            end = self._pending.find(b"\n\r\n")
            short_end = self._pending.find(b"\n\n")
            if short_end >= 0 and (end < 0 or short_end < end):
                head, size = self._pending[:short_end], short_end + 2
            elif end >= 0:
                head, size = self._pending[:end], end + 3
            else:
                if len(self._pending) > LONGEST_HEADER:
                    del self._pending[:-1024]
                return False
            lengths = [match for line in bytes(head).split(b"\n") if (match := _LENGTH.search(line.strip()))]
            del self._pending[:size]
            if lengths and int(lengths[-1].group(1)) <= LONGEST_BODY:
                self._length = int(lengths[-1].group(1))
                return True


def frame(body: bytes) -> bytes:
    """A body with its header."""
    return b"Content-Length: %d\r\n\r\n" % len(body) + body
