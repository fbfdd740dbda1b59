"""The agent's front door: joins its host, takes one request, runs it."""

from __future__ import annotations

import os
import platform
import socket
import sys
import threading
from typing import Any

from gradsight.agent import limits, supervise, wire
from gradsight.agent.session import AgentSession

_EXIT = os._exit


def serve(arguments: list[str]) -> int:
    """`once FD LIFELINE`: one request over an inherited socket; `rank`: over the address in the environment;
    `zygote FD` and `spare FD LIFELINE`: wait with torch imported.  With `-` for both an agent dials the address too."""
    mode = arguments[0]
    limits.prepare_environment()
    if mode == "rank":
        return _serve_rank()
    if mode == "zygote":
        from gradsight.agent.standby import serve_zygote

        return serve_zygote(int(arguments[1]))
    if arguments[1] == wire.BY_ADDRESS:
        # The program shall not find the address: nobody else has to dial it.
        address = os.environ.pop(wire.ADDRESS_VARIABLE)
        channel = wire.Channel(wire.connect(address))
        limits.follow_host(wire.connect(address))
    else:
        supervise.split_off(int(arguments[2]))
        channel = wire.Channel(socket.socket(fileno=wire.private(int(arguments[1]))))
        limits.follow_parent(wire.private(int(arguments[2])))
    if mode == "spare":
        from gradsight.agent.standby import warm_up

        warm_up()
    return converse(channel)


def converse(channel: wire.Channel) -> int:
    """Takes the key, says hello, waits for the request and answers it."""
    if not channel.take_key():
        return 0
    channel.send(
        wire.HELLO, {"protocol": wire.PROTOCOL, "pid": os.getpid(), "python": platform.python_version()}
    )
    message = channel.receive()
    if message is None or message["kind"] != wire.RUN:
        return 0
    return finish(AgentSession(channel, message["request"]).run())


def finish(status: int) -> int:
    """Ends the process without waiting for threads and exit handlers of the program that would not end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
    if any(thread is not threading.main_thread() and not thread.daemon for thread in threading.enumerate()):
        _EXIT(status)
    return status


def _serve_rank() -> int:
    """One process of several, started by torch's launcher."""
    endpoint = wire.connect(os.environ[wire.ADDRESS_VARIABLE])
    channel = wire.Channel(endpoint)
    if not channel.take_key():
        return 0
    channel.send(
        wire.HELLO,
        {
            "protocol": wire.PROTOCOL,
            "pid": os.getpid(),
            "python": platform.python_version(),
            "rank": int(os.environ.get("RANK", "0")),
        },
    )
    message: Any = channel.receive()
    if message is None or message["kind"] != wire.RUN:
        return 0
    threading.Thread(target=_end_with_host, args=(channel,), daemon=True, name="gradsight-lifeline").start()
    supervise.adopt_orphans()
    status = AgentSession(channel, message["request"]).run()
    supervise.end_descendants()
    return finish(status)


def _end_with_host(channel: wire.Channel) -> None:
    while True:
        message = channel.receive()
        if message is None or message["kind"] == wire.CANCEL:
            _EXIT(137)
