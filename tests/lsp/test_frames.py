"""Messages are found in whatever arrives, in whatever pieces."""

from __future__ import annotations

import random

from gradsight.lsp.frames import FrameReader, frame


def test_messages_are_found_however_the_stream_is_cut() -> None:
    bodies = [b"{}", '{"a": "é😀"}'.encode(), b"[" + b"1," * 5000 + b"1]", b""]
    stream = b"".join(frame(body) for body in bodies)
    rng = random.Random(3)
    for _ in range(50):
        reader, found, rest = FrameReader(), [], stream
        while rest:
            size = rng.randint(1, 3000)
            found += reader.feed(rest[:size])
            rest = rest[size:]
        assert found == bodies


def test_headers_may_come_in_any_order_and_case() -> None:
    check(b"Content-Type: x\r\ncontent-length: 2\r\n\r\n{}", [b"{}"])
    check(b"Content-Length: 2\nContent-Type: x\n\n{}", [b"{}"])


def test_what_is_no_header_is_passed_over() -> None:
    check(b"noise\r\n\r\n" + frame(b"{}"), [b"{}"])
    check(b"Content-Length: many\r\n\r\n" + frame(b"{}"), [b"{}"])
    check(b"noise without end " * 10_000 + b"\r\n\r\n" + frame(b"{}"), [b"{}"])


def test_a_body_longer_than_its_length_costs_itself_only() -> None:
    check(b"Content-Length: 2\r\n\r\n{} and more\r\n\r\n" + frame(b"[]"), [b"{}", b"[]"])


def check(stream: bytes, expected: list[bytes]) -> None:
    assert FrameReader().feed(stream) == expected
