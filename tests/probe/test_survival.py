"""Whatever a program does, the probe ends with a clear outcome, the host lives, and nothing is left running."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradsight.agent import wire
from gradsight.probe import host
from gradsight.probe.outcome import (
    Cancelled,
    CouldNotRun,
    Died,
    Observed,
    Outcome,
    Progress,
    Raised,
    Streams,
    TimedOut,
)
from gradsight.probe.request import ProbeRequest
from gradsight.probe.standby import Standby

STEP = "import torch\nx = torch.ones(2, requires_grad=True)\n(x * x).sum().backward()\n"
PATIENCE = 20.0


@pytest.fixture
def run(standby: Standby, tmp_path: Path) -> Iterator[object]:
    """Probes a program text; afterwards the same warm interpreter must still answer."""

    def probe(text: str, **options: object) -> Outcome:
        script = tmp_path / "program.py"
        script.write_text(text, "utf-8")
        options = {"timeout": 30.0, **options}
        return standby.run(ProbeRequest(sys.executable, script=str(script), **options))  # type: ignore[arg-type]

    yield probe
    assert isinstance(probe(STEP), Observed)


def test_error_of_the_program_is_reported(run) -> None:
    outcome = run("def f():\n    raise KeyError('lost')\nf()\n")
    assert isinstance(outcome, Raised)
    assert outcome.report["error"]["type"] == "KeyError"
    assert outcome.report["error"]["location"]["row"] == 2
    assert outcome.report["faults"] == []


def test_syntax_error_has_its_line(run) -> None:
    outcome = run("x = 1\nif x\n    pass\n")
    assert isinstance(outcome, Raised)
    assert outcome.report["error"]["type"] == "SyntaxError"
    assert outcome.report["error"]["location"]["row"] == 2


def test_missing_module_is_an_error_of_the_program(run) -> None:
    outcome = run("import torch\nimport no_such_module_anywhere\n")
    assert isinstance(outcome, Raised)
    assert outcome.report["error"]["type"] == "ModuleNotFoundError"


def test_endless_loop_times_out_with_what_was_seen(run) -> None:
    outcome = run(STEP + "x.data.mul_(2)\nwhile True:\n    pass\n", timeout=1.5)
    assert isinstance(outcome, TimedOut)
    assert outcome.report is not None
    assert outcome.report["parameters"][0]["name"] == "x"


def test_endless_loop_in_native_code_times_out(run) -> None:
    outcome = run("import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')\n", timeout=1.5)
    assert isinstance(outcome, TimedOut)


def test_os_exit_is_an_end_with_a_status(run) -> None:
    outcome = run(STEP + "import os\nos._exit(7)\n")
    assert isinstance(outcome, Raised)
    assert outcome.report["exit_code"] == 7
    assert outcome.report["parameters"][0]["grad"] == "ok"


def test_an_end_in_c_is_a_death(run) -> None:
    outcome = run(STEP + "import ctypes\nctypes.CDLL(None)._exit(7)\n")
    assert isinstance(outcome, Died)
    assert "7" in outcome.reason


def test_segmentation_fault_is_a_death(run) -> None:
    outcome = run("import ctypes\nctypes.string_at(0)\n")
    assert isinstance(outcome, Died)
    assert "SIGSEGV" in outcome.reason


def test_sys_exit_is_an_end(run) -> None:
    outcome = run(STEP + "import sys\nsys.exit(3)\n")
    assert isinstance(outcome, Raised)
    assert outcome.report["exit_code"] == 3
    assert outcome.report["parameters"][0]["grad"] == "ok"


def test_memory_limit_fails_the_allocation(run) -> None:
    outcome = run("import torch\ntorch.ones(4_000_000_000)\n", memory=3000)
    assert isinstance(outcome, Raised)
    assert outcome.report["error"]["type"] in ("RuntimeError", "MemoryError")


def test_children_do_not_survive(run, tmp_path: Path) -> None:
    note = tmp_path / "pids"
    text = (
        "import os, subprocess, sys\n"
        f"note = open({str(note)!r}, 'w')\n"
        "plain = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "apart = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n    import time; time.sleep(600)\n"
        "print(plain.pid, apart.pid, pid, file=note, flush=True)\n"
    )
    assert isinstance(run(text), Observed)
    pids = [int(word) for word in note.read_text().split()]
    assert len(pids) == 3
    wait_until(lambda: not any(is_running(pid) for pid in pids))


def test_forked_child_does_not_report_twice(run) -> None:
    outcome = run(
        STEP + "import os\npid = os.fork()\nif pid == 0:\n    raise SystemExit(0)\nos.waitpid(pid, 0)\n"
    )
    assert isinstance(outcome, Observed)


def test_closed_stdout_is_no_matter(run) -> None:
    outcome = run("import os, sys\nsys.stdout.close()\nos.close(1)\nos.close(2)\n" + STEP)
    assert isinstance(outcome, Observed)


def test_closed_descriptors_leave_the_report_in_the_folder(run) -> None:
    outcome = run(STEP + "import os\nos.closerange(3, 4096)\n")
    assert isinstance(outcome, Observed)
    assert outcome.report["parameters"][0]["grad"] == "ok"


def test_flood_of_output_is_drained_and_capped(run) -> None:
    text = (
        STEP
        + "import os\nblock = b'y' * (1 << 20)\nfor _ in range(100):\n    os.write(1, block)\nprint('the end')\n"
    )
    outcome = run(text)
    assert isinstance(outcome, Observed)
    assert outcome.output.endswith("the end\n")
    assert len(outcome.output) <= Streams().kept


def test_raw_bytes_on_other_descriptors_are_no_messages(run) -> None:
    text = (
        "import os\nfrom gradsight.agent import wire\n"
        "for fd in range(3, 260):\n"
        "    try:\n        os.write(fd, wire.MAGIC + b'rubbish')\n"
        "    except OSError:\n        pass\n"
    )
    outcome = run(text + STEP)
    assert isinstance(outcome, Observed)


def test_standard_input_is_empty(run) -> None:
    outcome = run("import sys\nassert sys.stdin.read() == ''\n" + STEP)
    assert isinstance(outcome, Observed)


def test_input_says_that_nobody_answers(run) -> None:
    outcome = run("name = input('your name? ')\n")
    assert isinstance(outcome, Raised)
    assert "your name?" in outcome.report["error"]["message"]


def test_patched_torch_does_not_take_the_probe_down(run) -> None:
    text = (
        "import torch\n"
        "torch.Tensor.detach = lambda self: 1 / 0\n"
        "torch.zeros = None\n"
        "torch.nn.Module.__setattr__ = object.__setattr__\n"
        "torch.autograd.backward = lambda *args, **kwargs: None\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "(x * x).sum().backward()\n"
    )
    assert isinstance(run(text), (Observed, Raised))


def test_program_that_swallows_everything_still_stops(run) -> None:
    text = (
        "import torch\nx = torch.ones(2, requires_grad=True)\n"
        "while True:\n    try:\n        (x * x).sum().backward()\n    except BaseException:\n        pass\n"
    )
    outcome = run(text, steps=2)
    assert isinstance(outcome, Observed)
    assert "backward" in outcome.report["stopped"]


def test_finally_blocks_run_when_the_steps_are_enough(run, tmp_path: Path) -> None:
    note = tmp_path / "closed"
    text = (
        "import torch\nx = torch.ones(2, requires_grad=True)\noptimizer = torch.optim.SGD([x], lr=0.1)\n"
        "try:\n    while True:\n        optimizer.zero_grad(); (x * x).sum().backward(); optimizer.step()\n"
        f"finally:\n    open({str(note)!r}, 'w').close()\n"
    )
    outcome = run(text, steps=3)
    assert isinstance(outcome, Observed)
    assert outcome.report["steps"] == 3
    assert note.exists()


def test_thread_that_never_ends_does_not_hold_the_probe(run) -> None:
    text = STEP + "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
    assert isinstance(run(text), Observed)


def test_kill_from_outside_is_a_death(standby: Standby, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    script = tmp_path / "program.py"
    script.write_text(f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
    threading.Thread(
        target=lambda: (
            wait_until(lambda: note.exists() and note.read_text()),
            os.kill(int(note.read_text()), signal.SIGKILL),
        )
    ).start()
    outcome = standby.run(ProbeRequest(sys.executable, script=str(script), timeout=60))
    assert isinstance(outcome, Died)
    assert "SIGKILL" in outcome.reason


def test_cancelled_probe_ends(standby: Standby, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(STEP + "import time\nwhile True:\n    (x * x).sum().backward(); time.sleep(0.01)\n")
    cancel = threading.Event()

    def listen(progress: Progress) -> None:
        if progress.backwards > 2:
            cancel.set()

    outcome = standby.run(ProbeRequest(sys.executable, script=str(script)), listen=listen, cancel=cancel)
    assert isinstance(outcome, Cancelled)


def test_no_orphan_when_the_host_is_killed(tmp_path: Path) -> None:
    note, script = tmp_path / "pid", tmp_path / "program.py"
    script.write_text(
        f"import os, re\nopen({str(note)!r}, 'w').write(str(os.getpid()))\nre.match(r'(a+)+$', 'a' * 60 + 'b')\n"
    )
    host_program = (
        "import sys\nfrom gradsight.probe import host\nfrom gradsight.probe.request import ProbeRequest\n"
        f"host.run(ProbeRequest(sys.executable, script={str(script)!r}))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", host_program])
    wait_until(lambda: note.exists() and bool(note.read_text()), 60)
    agent = int(note.read_text())
    assert is_running(agent)
    parent.kill()
    parent.wait()
    # The program holds the interpreter lock in native code: only the kernel's signal can end it.
    wait_until(lambda: not is_running(agent))


@pytest.mark.parametrize(
    ("then", "start"),
    [
        ("pass", "fresh"),
        ("os._exit(0)", "fresh"),
        ("pass", "warm"),
        ("os._exit(0)", "warm"),
        ("os.kill(os.getpid(), 9)", "warm"),
        ("time.sleep(600)", "warm"),
        ("raise ValueError", "warm"),
    ],
)
def test_a_child_that_leaves_everything_behind_is_ended(
    standby: Standby, tmp_path: Path, start: str, then: str
) -> None:
    note, script = tmp_path / "pid", tmp_path / "program.py"
    script.write_text(
        STEP + "import os, subprocess, time\n"
        "child = subprocess.Popen(['/bin/sleep', '600'], env={}, start_new_session=True, close_fds=True)\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n{then}\n"
    )
    request = ProbeRequest(sys.executable, script=str(script), timeout=4)
    outcome = host.run(request) if start == "fresh" else standby.run(request)
    assert isinstance(outcome, (Observed, Raised, Died, TimedOut))
    wait_until(lambda: not is_running(int(note.read_text())))


def test_a_detached_child_ends_when_the_host_is_killed(tmp_path: Path) -> None:
    note, script = tmp_path / "pid", tmp_path / "program.py"
    script.write_text(
        "import subprocess, time\n"
        "child = subprocess.Popen(['/bin/sleep', '600'], env={}, start_new_session=True)\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\ntime.sleep(600)\n"
    )
    program = (
        "import sys\nfrom gradsight.probe import host\nfrom gradsight.probe.request import ProbeRequest\n"
        f"host.run(ProbeRequest(sys.executable, script={str(script)!r}))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program])
    wait_until(lambda: note.exists() and bool(note.read_text()), 60)
    parent.kill()
    parent.wait()
    wait_until(lambda: not is_running(int(note.read_text())))


@pytest.mark.parametrize("mode", ["zygote", "spare"])
def test_a_process_that_still_imports_torch_ends_with_the_host(tmp_path: Path, mode: str) -> None:
    (tmp_path / "torch.py").write_text(
        "import os, time\nopen(__file__ + '.begun', 'w').close()\ntime.sleep(600)\n"
    )
    ours, theirs = socket.socketpair()
    lifeline_read, lifeline = os.pipe()
    numbers = [str(theirs.fileno()), str(lifeline_read)][: 1 if mode == "zygote" else 2]
    process = subprocess.Popen(
        [sys.executable, host.BOOT, mode, *numbers],
        pass_fds=(theirs.fileno(), lifeline_read),
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        start_new_session=True,
    )
    theirs.close()
    os.close(lifeline_read)
    wait_until((tmp_path / "torch.py.begun").exists, 30)
    assert process.poll() is None
    ours.close()
    os.close(lifeline)
    process.wait(5)


FORGED = """
import json, os, struct, sys
body = {{"kind": "report", "outcome": "clean", "error": None, "faults": [], "caught": [], "parameters": [], "facts": [],
        "visited": {{}}, "sighted": [], "graph": None, "notes": [], "torch": "9", "python": "3", "seconds": 0, "stopped": "",
        "backwards": 1, "steps": 0, "exit_code": 0, "internal_error": ""}}
{attack}
y = torch.ones(3, requires_grad=True).exp()
y += 1
y.sum().backward()
"""
EVERYWHERE = """
for descriptor in range(3, 400):
    try:
        os.write(descriptor, frame)
    except OSError:
        pass
"""
ATTACKS = {
    "unsealed": "from gradsight.agent import wire\nframe = wire.encode('report', body)" + EVERYWHERE,
    "other key": "from gradsight.agent import wire\nframe = wire.encode('report', body, seal=wire.sealing('00' * 32))" + EVERYWHERE,
    "endless": "frame = struct.pack('!4sHI', b'\\xf5GSw', 2, 268435455) + b'x' * 5000" + EVERYWHERE,
    "magic only": "frame = b'\\xf5GSw' * 9000" + EVERYWHERE,
    "other protocol": "frame = struct.pack('!4sHI', b'\\xf5GSw', 99, 2) + b'{{}}' * 99" + EVERYWHERE,
    "channel": "import gc\nfor each in gc.get_objects():\n    if type(each).__name__ == 'Channel':\n        each.send('report', body)",
    "file": "import glob, tempfile\nfrom gradsight.agent import wire\n"
    "for each in glob.glob(tempfile.gettempdir() + '/gradsight-*'):\n    try:\n"
    "        open(each + '/report.bin', 'wb').write(wire.encode('report', body))\n"
    "    except OSError:\n        pass  # the folder of another run, which is over\nos.closerange(3, 4096)",
    "json replaced": "json.dumps = lambda *a, **k: 'x'\njson.loads = None\njson.JSONEncoder.default = None",
    "closed": "os.closerange(3, 4096)",
    "closed and reused": "os.closerange(3, 4096)\nkept = [open('/dev/null', 'r+b') for _ in range(400)]",
    "closed and taken": "import socket\nos.closerange(3, 4096)\nkept = [socket.socketpair() for _ in range(150)]",
}  # fmt: skip


@pytest.mark.parametrize(
    ("attack", "start"),
    [*((name, "warm") for name in ATTACKS), ("unsealed", "fresh"), ("closed and reused", "fresh")],
)
def test_a_program_cannot_forge_or_lose_its_report(
    standby: Standby, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: str, start: str
) -> None:
    script = tmp_path / "program.py"
    script.write_text("import torch\n" + FORGED.format(attack=ATTACKS[attack]))
    # One attack writes into every folder of a run that it finds: only this run's may be there.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    request = ProbeRequest(
        sys.executable, script=str(script), timeout=60, environment={"TMPDIR": str(tmp_path)}
    )
    outcome = host.run(request) if start == "fresh" else standby.run(request)
    assert isinstance(outcome, Raised), outcome
    assert [fault["code"] for fault in outcome.report["faults"]] == ["GS101"]
    assert outcome.report["torch"] != "9"


def test_no_interpreter_cannot_run(tmp_path: Path) -> None:
    outcome = host.run(ProbeRequest(str(tmp_path / "python"), code="pass"))
    assert isinstance(outcome, CouldNotRun)
    assert "cannot be started" in outcome.reason


def test_no_script_cannot_run(run, standby: Standby, tmp_path: Path) -> None:
    outcome = standby.run(ProbeRequest(sys.executable, script=str(tmp_path / "absent.py")))
    assert isinstance(outcome, CouldNotRun)
    assert "absent.py" in outcome.reason


def test_interpreter_without_torch_cannot_run(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('there is no torch here')\n")
    outcome = host.run(ProbeRequest(sys.executable, code="pass", environment={"PYTHONPATH": str(tmp_path)}))
    assert isinstance(outcome, CouldNotRun)
    assert "there is no torch here" in outcome.reason


def test_a_torch_that_is_too_old_is_named(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("__version__ = '1.13.1+cpu'\n")
    outcome = host.run(ProbeRequest(sys.executable, code="pass", environment={"PYTHONPATH": str(tmp_path)}))
    assert isinstance(outcome, CouldNotRun)
    assert outcome.reason == "torch 1.13.1+cpu is too old for the probe (2.0 is the oldest)"


def test_old_python_is_named(tmp_path: Path) -> None:
    program = (
        "import runpy, sys; sys.version_info = (3, 8, 0); sys.argv = sys.argv[1:]; "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    outcome = host.run(
        ProbeRequest(pretender(tmp_path, f'exec "{sys.executable}" -c "{program}" "$@"'), code="pass")
    )
    assert isinstance(outcome, CouldNotRun)
    assert "too old" in outcome.reason


def test_other_protocol_is_named(tmp_path: Path) -> None:
    frame = wire.encode(wire.HELLO, {"pid": 1}, version=99).hex()
    program = f"import os, sys; os.write(int(sys.argv[3]), bytes.fromhex('{frame}'))"
    outcome = host.run(
        ProbeRequest(pretender(tmp_path, f'exec "{sys.executable}" -c "{program}" "$@"'), code="pass")
    )
    assert isinstance(outcome, CouldNotRun)
    assert "99" in outcome.reason


def test_interpreter_that_is_none_cannot_run(tmp_path: Path) -> None:
    outcome = host.run(ProbeRequest(pretender(tmp_path, "exit 0"), code="pass"))
    assert isinstance(outcome, CouldNotRun)


def pretender(folder: Path, line: str) -> str:
    """An executable that takes the place of an interpreter."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return str(path)


def is_running(pid: int) -> bool:
    """Whether a process lives; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(condition, patience: float = PATIENCE) -> None:
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


def test_compilers_windows_and_workers_are_off(run) -> None:
    text = STEP + (
        "import os\nassert os.environ['MPLBACKEND'] == 'Agg'\n"
        "twice = torch.compile(lambda value: value * 2)\ntwice(x).sum().backward()\n"
        "import multiprocessing\nloader = torch.utils.data.DataLoader([1, 2], num_workers=4)\n"
        "for batch in loader:\n    assert not multiprocessing.active_children()\n"
    )
    outcome = run(text)
    assert isinstance(outcome, Observed), outcome
    notes = " ".join(outcome.report["notes"])
    assert "torch.compile is switched off" in notes
    assert "num_workers=0 instead of 4" in notes
    assert outcome.report["outcome"] == "clean"


def test_loaders_and_compiled_modules_are_as_the_program_asks_for_them(run) -> None:
    outcome = run(
        STEP + "loader = torch.utils.data.DataLoader(\n"
        "    [1, 2], num_workers=2, timeout=9, persistent_workers=True, prefetch_factor=3)\n"
        "for epoch in range(2):\n    assert [int(one) for one in loader] == [1, 2]\n"
        "    assert (loader.num_workers, loader.timeout) == (2, 9)\n"
        "inner = torch.nn.Linear(3, 3)\nnet = torch.compile(inner)\n"
        "assert net._orig_mod is inner and len(list(net.modules())) == 1\nrepr(net)\n"
    )
    assert isinstance(outcome, Observed), outcome
    assert outcome.report["outcome"] == "clean", outcome.report["error"]


def test_nothing_is_written_beside_the_program(standby: Standby, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("value = 3\n")
    script = tmp_path / "main.py"
    script.write_text(STEP + "import helper\nassert helper.value == 3\n")
    assert isinstance(standby.run(ProbeRequest(sys.executable, script=str(script), timeout=30)), Observed)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["helper.py", "main.py"]


def test_private_folder_is_gone_after_the_probe(run, tmp_path: Path) -> None:
    note = tmp_path / "folders"
    text = STEP + (
        "import gradsight.agent.session, gc\n"
        "session = next(o for o in gc.get_objects() if type(o).__name__ == 'AgentSession')\n"
        f"open({str(note)!r}, 'w').write(str(session.request['folder']))\n"
    )
    outcome = run(text)
    assert isinstance(outcome, Observed), outcome
    assert not Path(note.read_text()).exists()
