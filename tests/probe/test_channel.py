"""Where descriptors cannot be inherited the agent dials back: the branch of Windows, tried here with what Windows lacks taken away.

Host: no `pass_fds`, no sessions, no process groups, only sockets can be waited for.  Agent: no `fork`, no groups, no `fcntl`
and no `resource`.  What is not tried is Windows itself.
"""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from gradsight.agent import wire
from gradsight.probe import channel, host, standby
from gradsight.probe.outcome import Cancelled, CouldNotRun, Observed, Outcome, Raised, Streams, TimedOut
from gradsight.probe.request import ProbeRequest

LACKING = """
import os, signal, sys
for owner, names in (
    (os, ("fork", "forkpty", "killpg", "getpgid", "setpgid", "setsid", "set_blocking")),
    (signal, ("SIGCHLD",)),
):
    for name in names:
        delattr(owner, name)
sys.modules["fcntl"] = sys.modules["resource"] = None
"""
FAULTY = """
import sys
import torch
w = torch.ones(3, requires_grad=True)
y = w.exp()
y *= 2
print("before")
print("aside", file=sys.stderr)
y.sum().backward()
"""


class _OnlySockets(selectors.SelectSelector):
    """As on Windows: nothing but sockets can be waited for."""

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        assert isinstance(fileobj, socket.socket), f"{fileobj} is no socket"
        return super().register(fileobj, events, data)


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of the agent; around it this process is one without descriptors to inherit."""
    folder = tmp_path / "lacking"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(LACKING, "utf-8")
    begin = subprocess.Popen.__init__

    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        assert not {"pass_fds", "start_new_session", "preexec_fn", "process_group"} & set(kwargs)
        begin(self, *args, **kwargs)

    monkeypatch.setattr(channel, "inherits_descriptors", lambda: False)
    monkeypatch.setattr(standby, "_can_fork", lambda: False)
    monkeypatch.setattr(subprocess.Popen, "__init__", checked)
    monkeypatch.setattr(selectors, "DefaultSelector", _OnlySockets)
    monkeypatch.delattr(os, "killpg")
    return {"PYTHONPATH": str(folder)}


def probed(tmp_path: Path, environment: dict[str, str], text: str, **options: Any) -> Outcome:
    script = tmp_path / "program.py"
    script.write_text(text, "utf-8")
    cancel = options.pop("cancel", None)
    streams = options.pop("streams", None)
    request = ProbeRequest(
        sys.executable, script=str(script), environment=environment, **{"timeout": 60.0, **options}
    )
    return host.run(request, streams, cancel=cancel)


def test_what_is_lacking_is_really_lacking(environment: dict[str, str]) -> None:
    asked = [sys.executable, "-c", "import os; print(hasattr(os, 'fork')); import fcntl"]
    done = subprocess.run(
        asked, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.stdout == "False\n"
    assert "ModuleNotFoundError" in done.stderr


def test_a_fault_is_blamed_and_what_is_printed_arrives(tmp_path: Path, environment: dict[str, str]) -> None:
    said, said_aside = tmp_path / "out.txt", tmp_path / "error.txt"
    with said.open("wb") as out, said_aside.open("wb") as aside:
        outcome = probed(
            tmp_path, environment, FAULTY, streams=Streams(stdout=out.fileno(), stderr=aside.fileno())
        )
    assert isinstance(outcome, Raised), outcome
    assert [(fault["code"], fault["location"]["row"]) for fault in outcome.report["faults"]] == [("GS101", 6)]
    assert said.read_text() == "before\n"
    assert said_aside.read_text() == "aside\n"


def test_the_program_does_not_find_the_address(tmp_path: Path, environment: dict[str, str]) -> None:
    outcome = probed(
        tmp_path, environment, f"import os, torch\nassert {wire.ADDRESS_VARIABLE!r} not in os.environ\n"
    )
    assert isinstance(outcome, Observed), outcome


def test_a_program_without_end_is_ended(tmp_path: Path, environment: dict[str, str]) -> None:
    alive = tmp_path / "pid"
    text = f"import os\nopen({str(alive)!r}, 'w').write(str(os.getpid()))\nwhile True:\n    pass\n"
    assert isinstance(probed(tmp_path, environment, text, timeout=1.0), TimedOut)
    assert _is_gone(int(alive.read_text()))


def test_a_probe_that_is_cancelled_ends(tmp_path: Path, environment: dict[str, str]) -> None:
    cancel = threading.Event()
    threading.Timer(1.0, cancel.set).start()
    outcome = probed(tmp_path, environment, "while True:\n    pass\n", cancel=cancel, timeout=0)
    assert isinstance(outcome, Cancelled)


def test_an_agent_whose_host_hangs_up_ends_itself(tmp_path: Path, environment: dict[str, str]) -> None:
    request = ProbeRequest(sys.executable, environment=environment)
    line = channel.start(
        [sys.executable, host.BOOT], "once", host.child_environment(request, "mark"), None, 60.0
    )
    assert line.process.poll() is None
    channel.close(line.lifeline)
    assert line.process.wait(20) == 137
    for stream in (line.endpoint, *line.outputs):
        channel.close(stream)


def test_whoever_does_not_know_the_secret_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        secret = "0" * wire.TOKEN_SIZE
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        wrong = wire.connect(f"{port}:{'1' * wire.TOKEN_SIZE}")
        right = [wire.connect(f"{port}:{secret}") for _ in range(2)]
        try:
            found = channel._dialled(server, secret.encode(), process, 20.0)
            found[0].sendall(b"hello")
            assert right[0].recv(5) == b"hello"
            assert wrong.recv(1) == b""
        finally:
            process.communicate()
            for each in (wrong, *right, *found):
                each.close()


def test_an_interpreter_that_ends_at_once_is_said_to(tmp_path: Path, environment: dict[str, str]) -> None:
    outcome = host.run(ProbeRequest("/bin/false", environment=environment, script=str(tmp_path / "none.py")))
    assert isinstance(outcome, CouldNotRun)
    assert "exit status 1" in outcome.detail


def test_a_waiting_interpreter_is_used(tmp_path: Path, environment: dict[str, str], monkeypatch: Any) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    script = tmp_path / "program.py"
    script.write_text(FAULTY, "utf-8")
    warm = standby.Standby()
    warm.warm(sys.executable)
    try:
        outcome = warm.run(ProbeRequest(sys.executable, script=str(script), timeout=60.0, threads=1))
        assert isinstance(outcome, Raised), outcome
    finally:
        warm.drop()


def _is_gone(pid: int) -> bool:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except OSError:
            return True
        time.sleep(0.05)
    return False
