"""The wire: framed, checked, versioned, and deaf to everything else."""

from __future__ import annotations

import os
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradsight.agent import wire
from gradsight.probe.message_shapes import has_shape


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


def test_only_frames_under_the_key_are_read() -> None:
    key, other = wire.new_key(), wire.new_key()
    frames = [
        wire.encode(wire.REPORT, {"value": number}, seal=wire.sealing(each))
        for number, each in enumerate(("", other, key, other, key))
    ]
    found = list(wire.Decoder(key).feed(b"".join(frames)))
    assert [message["value"] for message in found] == [2, 4]


def test_a_length_without_a_seal_is_not_waited_for() -> None:
    key = wire.new_key()
    forged = struct.pack("!4sHI", wire.MAGIC, wire.PROTOCOL, 200_000_000) + b"x" * 64
    found = list(wire.Decoder(key).feed(forged + wire.encode(wire.HELLO, {}, seal=wire.sealing(key))))
    assert [message["kind"] for message in found] == [wire.HELLO]


def test_a_sealed_frame_that_is_no_json_is_dropped() -> None:
    payload, seal = b"{nonsense", wire.sealing("")
    start = struct.pack("!4sHI", wire.MAGIC, wire.PROTOCOL, len(payload))
    found, _ = messages_of(start + seal(start) + payload + seal(payload) + wire.encode(wire.HELLO, {}))
    assert [message["kind"] for message in found] == [wire.HELLO]


def test_messages_that_arrive_together_are_received_one_by_one() -> None:
    ours, theirs = socket.socketpair()
    key = wire.new_key()
    ours.sendall(wire.encode(wire.KEY, {"key": key}) + wire.encode(wire.RUN, {"request": {}}))
    channel = wire.Channel(theirs)
    assert channel.take_key()
    assert channel.receive() == {"kind": wire.RUN, "request": {}}


REPORT = {
    "kind": wire.REPORT, "error": None, "faults": [], "caught": [], "parameters": [], "facts": [], "visited": {},
    "sighted": [], "graph": None, "notes": [], "torch": "2.13", "python": "3.11", "seconds": 0.5, "stopped": "",
    "backwards": 1, "steps": 0, "exit_code": 0, "internal_error": "",
}  # fmt: skip


def test_a_report_of_the_right_shape_is_taken() -> None:
    assert has_shape(REPORT)


@pytest.mark.parametrize(
    "change", [{"faults": [{}]}, {"error": "no"}, {"notes": [1]}, {"backwards": "1"}, {"facts": {}}]
)
def test_a_message_of_another_shape_is_dropped(change: dict[str, object]) -> None:
    assert not has_shape({**REPORT, **change})


@pytest.mark.parametrize(
    "kind", [wire.PROGRESS, wire.HELLO, wire.EXITED, wire.REPORT, wire.REFUSED, "unheard of"]
)
def test_a_message_without_its_parts_is_dropped(kind: str) -> None:
    assert not has_shape({"kind": kind})
