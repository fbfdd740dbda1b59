"""The wire: framed, checked, versioned, and deaf to everything else."""

from __future__ import annotations

import os
import socket
import struct

from hypothesis import given
from hypothesis import strategies as st

from gradsight.agent import wire


def messages_of(data: bytes, piece: int = 7) -> tuple[list[wire.Message], wire.Decoder]:
    decoder = wire.Decoder()
    found = []
    for start in range(0, len(data), piece):
        found += list(decoder.feed(data[start : start + piece]))
    return found, decoder


def test_message_survives_any_pieces() -> None:
    frame = wire.encode(wire.PROGRESS, {"steps": 3, "text": "Größe → ∇"})
    for piece in (1, 5, len(frame)):
        found, _ = messages_of(frame, piece)
        assert found == [{"kind": wire.PROGRESS, "steps": 3, "text": "Größe → ∇"}]


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_foreign_bytes_around_frames_are_skipped(before: bytes, after: bytes) -> None:
    before = before.replace(wire.MAGIC, b"")
    first, second = wire.encode(wire.HELLO, {"pid": 1}), wire.encode(wire.REPORT, {"value": 2})
    found, _ = messages_of(before + first + after.replace(wire.MAGIC, b"") + second)
    assert [message["kind"] for message in found] == [wire.HELLO, wire.REPORT]


def test_damaged_frame_is_dropped_and_the_next_one_read() -> None:
    damaged = bytearray(wire.encode(wire.HELLO, {"pid": 1}))
    damaged[-2] ^= 0xFF
    found, decoder = messages_of(bytes(damaged) + wire.encode(wire.REPORT, {"value": 2}))
    assert [message["kind"] for message in found] == [wire.REPORT]
    assert decoder.skipped > 0


def test_other_protocol_is_noticed_and_not_parsed() -> None:
    found, decoder = messages_of(wire.encode(wire.REPORT, {"value": 2}, version=99))
    assert found == []
    assert decoder.foreign_version == 99


def test_absurd_length_is_no_frame() -> None:
    absurd = wire.MAGIC + struct.pack("!HII", wire.PROTOCOL, 2**31, 0)
    found, _ = messages_of(absurd + wire.encode(wire.HELLO, {}))
    assert [message["kind"] for message in found] == [wire.HELLO]


def test_forked_child_stays_silent() -> None:
    ours, theirs = socket.socketpair()
    channel = wire.Channel(theirs)
    pid = os.fork()
    if pid == 0:
        os._exit(1 if channel.send(wire.REPORT, {"from": "child"}) else 0)
    _, status = os.waitpid(pid, 0)
    assert os.WEXITSTATUS(status) == 0
    assert channel.send(wire.REPORT, {"from": "parent"})
    found, _ = messages_of(ours.recv(4096))
    assert [message["from"] for message in found] == ["parent"]


def test_channel_without_a_reader_says_so() -> None:
    ours, theirs = socket.socketpair()
    channel = wire.Channel(theirs)
    ours.close()
    assert not channel.send(wire.HELLO, {})
    assert channel.receive() is None
