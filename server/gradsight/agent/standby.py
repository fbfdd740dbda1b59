"""A warm interpreter: torch is imported, the first step is taken, and a probe starts in milliseconds.

A *zygote* forks one child per probe.  A *spare* is a process that runs one probe itself.
"""

from __future__ import annotations

import array
import gc
import os
import signal
import socket
from typing import Any

from gradsight.agent import limits, supervise, wire

_DESCRIPTORS = 4
# A program may put something of its own in the place of this.
_EXIT = os._exit


def warm_up() -> None:
    """Imports what a training step imports, and takes one.

    One thread only, and before any operator: a process that ever opened an OpenMP team hands a dead one to its forked
    children, which then wait for it for ever.
    """
    import torch

    torch.set_num_threads(1)
    import torch._dynamo
    import torch.utils.checkpoint
    import torch.utils.data

    # All that a run imports of ours: a child would do it again for every probe.
    import gradsight.agent.session
    import gradsight.agent.stage  # noqa: F401

    layer = torch.nn.Linear(4, 4)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    torch.manual_seed(torch.initial_seed())
    # The forked children share these pages as long as nobody touches them.
    gc.collect()
    gc.freeze()


def serve_zygote(control: int) -> int:
    """Forks a child for every request until the host hangs up."""
    endpoint = socket.socket(fileno=control)
    os.set_inheritable(control, False)
    supervise.adopt_orphans()
    # To import torch takes long on a busy machine, and the host may be gone by then.
    with limits.ending_with(endpoint):
        warm_up()
    endpoint.sendall(wire.encode(wire.HELLO, {"protocol": wire.PROTOCOL, "pid": os.getpid()}))
    children: dict[int, int] = {}
    decoder = wire.Decoder()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGCHLD, lambda *unused: None)
    import selectors

    selector = selectors.DefaultSelector()
    selector.register(endpoint, selectors.EVENT_READ)
    selector.register(reader, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is endpoint:
                data, descriptors = _receive(endpoint)
                if not data:
                    return 0
                for message in decoder.feed(data):
                    if message["kind"] == wire.RUN:
                        pid = _fork(message, descriptors, (selector, endpoint, reader, writer))
                        children[pid] = int(message["probe"])
                        endpoint.sendall(wire.encode(wire.STARTED, {"probe": message["probe"], "pid": pid}))
            else:
                os.read(reader, 512)
        _reap(children, endpoint)


def _reap(children: dict[int, int], endpoint: socket.socket) -> None:
    for pid in list(children):
        try:
            ended, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            ended, status = pid, 0
        if ended:
            probe = children.pop(pid)
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            if not children:
                # What is left below this process was started by programs that are over.
                supervise.end_descendants()
            endpoint.sendall(wire.encode(wire.EXITED, {"probe": probe, "status": code}))


def _receive(endpoint: socket.socket) -> tuple[bytes, list[int]]:
    space = socket.CMSG_SPACE(_DESCRIPTORS * array.array("i").itemsize)
    data, ancillary, _, _ = endpoint.recvmsg(1 << 20, space)
    descriptors: list[int] = []
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            received = array.array("i")
            received.frombytes(payload[: len(payload) - len(payload) % received.itemsize])
            descriptors.extend(received)
    return data, descriptors


def _fork(message: dict[str, Any], descriptors: list[int], parents: tuple[Any, ...]) -> int:
    pid = os.fork()
    if pid:
        for descriptor in descriptors:
            os.close(descriptor)
        return pid
    status = 70
    try:
        status = _child(message, descriptors, parents)
    finally:
        _EXIT(status)


def _child(message: dict[str, Any], descriptors: list[int], parents: tuple[Any, ...]) -> int:
    """Becomes a process of its own: session, streams, limits, environment."""
    from gradsight.agent.session import AgentSession

    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    selector, endpoint, reader, writer = parents
    selector.close()
    endpoint.close()
    os.close(reader)
    os.close(writer)
    channel_fd, lifeline, output, errors = descriptors
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (output, 1), (errors, 2)):
        os.dup2(source, target)
        os.close(source)
    channel_fd, lifeline = wire.private(channel_fd), wire.private(lifeline)
    os.environ.clear()
    os.environ.update({str(key): str(value) for key, value in message["environment"].items()})
    limits.prepare_environment()
    limits.follow_parent(lifeline)
    _fresh_randomness()
    channel = wire.Channel(socket.socket(fileno=channel_fd), str(message.pop("key")))
    return AgentSession(channel, message["request"]).run()


def _fresh_randomness() -> None:
    """Forked twins must not draw the same numbers unless they are seeded to."""
    import random

    import torch

    random.seed()
    torch.seed()
