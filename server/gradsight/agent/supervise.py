"""The guard over a run: a small process above the agent that adopts what the program leaves behind, and ends it.

On Linux a process can ask to become the parent of every orphan below it.  A child that went into a session of its own,
with an empty environment, is found that way when the program is over, however it ended.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Collection

_ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER
_PATIENCE = 2.0


def adopt_orphans() -> bool:
    """Whether orphans below this process become its children from now on."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        import ctypes

        return bool(ctypes.CDLL(None, use_errno=True).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def split_off(lifeline: int) -> None:
    """Returns in a child that runs the program; this process stays behind as its guard, and ends with its status."""
    if not adopt_orphans():
        return
    agent = os.fork()
    if agent == 0:
        os.setpgid(0, 0)
        return
    status = 70
    try:
        status = _guard(agent, lifeline)
    finally:
        end_descendants()
        _end_like(status)


def _guard(agent: int, lifeline: int) -> int:
    """Waits for the end of the agent, or of the host; the status of the agent as `waitpid` tells it."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *unused: None)
    signal.set_wakeup_fd(wake)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    kept = {lifeline, woken, wake}
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                continue
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == agent:
            return status
        if ended:
            continue
        ready, _, _ = select.select([lifeline, woken], [], [])
        if lifeline in ready and not os.read(lifeline, 64):
            return signal.SIGKILL
        if woken in ready:
            os.read(woken, 512)


def _end_like(status: int) -> None:
    """Ends this process the way the agent ended."""
    if os.WIFSIGNALED(status):
        try:
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if os.WTERMSIG(status) != signal.SIGKILL:
                signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
            os.kill(os.getpid(), os.WTERMSIG(status))
        except (ImportError, OSError, ValueError):
            os._exit(70)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 70)


def end_descendants(spared: Collection[int] = ()) -> None:
    """Kills everything below this process, again and again while something new appears, for a short time."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        found = descendants_of(os.getpid(), spared)
        if not found:
            return
        for pid in found:
            _kill(pid)
        for pid in found:
            _reap(pid)
        time.sleep(0.005)


def descendants_of(root: int, spared: Collection[int] = ()) -> list[int]:
    """The living processes below one, but not those below the spared ones; nothing where there is no /proc.

    A process whose main thread is gone keeps its children until its last thread is.
    """
    children: dict[int, list[int]] = {}
    dead: set[int] = set()
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            children.setdefault(int(parent), []).append(int(name))
            if state in (b"Z", b"X"):
                dead.add(int(name))
    found: list[int] = []
    todo = [root]
    while todo:
        below = [pid for pid in children.get(todo.pop(), ()) if pid not in spared]
        found += [pid for pid in below if pid not in dead]
        todo += below
    return found


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except OSError:
        return
