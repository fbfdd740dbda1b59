"""Keeps a run inside its limits: number of steps, seeds, memory, and what must not happen in a probe."""

from __future__ import annotations

import builtins
import contextlib
import os
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from gradsight.agent.faults import Ledger

_SWALLOWED_STOPS = 3
_BACKWARDS_PER_STEP = 16


class ProbeStop(BaseException):
    """Ends the program from inside.  Not an Exception, so that `except Exception` lets it pass."""


class InputAsked(Exception):
    """The program called `input()`; a probe has nobody to answer."""


class RunLimits:
    """Counts steps and backwards, and ends the run when they are enough."""

    def __init__(self, limit: int, leave: Callable[[], None]) -> None:
        self.limit = limit
        self.leave = leave
        self.steps = 0
        self.backwards = 0
        self.has_optimizer = False
        self.stopped = ""
        self._raised = 0
        self._thread = threading.get_ident()

    def count_step(self) -> None:
        """One optimizer step is done."""
        self.steps += 1
        if self.limit and self.steps >= self.limit:
            self._stop(f"{self.steps} optimizer steps")

    def count_backward(self) -> None:
        """One backward is done.  With an optimizer around, several may belong to one step."""
        self.backwards += 1
        if not self.limit:
            return
        allowed = self.limit * _BACKWARDS_PER_STEP if self.has_optimizer else self.limit
        if self.backwards >= allowed:
            self._stop(f"{self.backwards} backward calls")

    def _stop(self, reason: str) -> None:
        self.stopped = reason
        self._raised += 1
        if self._raised > _SWALLOWED_STOPS or threading.get_ident() != self._thread:
            # The program catches everything in a loop, or runs in a thread of its own: leave for good.
            self.leave()
        raise ProbeStop(reason)


def prepare_environment() -> None:
    """No windows, no compilers, no trackers: before torch and the user's packages are imported."""
    for name, value in (
        ("MPLBACKEND", "Agg"),
        ("TORCHDYNAMO_DISABLE", "1"),
        ("TORCH_COMPILE_DISABLE", "1"),
        ("WANDB_MODE", "disabled"),
        ("TQDM_DISABLE", "1"),
        ("TOKENIZERS_PARALLELISM", "false"),
    ):
        os.environ.setdefault(name, value)
    sys.dont_write_bytecode = True


def limit_memory(megabytes: int) -> bool:
    """Whether the memory limit is in force.  An allocation beyond it fails in the program, not in the machine."""
    try:
        import resource
    except ImportError:
        return False
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if megabytes <= 0:
        return True
    size = megabytes * 1024 * 1024
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    except (ValueError, OSError):
        return False
    return True


def seed_everything(seed: int) -> None:
    """The same run twice is the same run."""
    import torch

    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


def refuse_input() -> None:
    """`input()` raises instead of waiting for ever."""

    def refuse(prompt: object = "") -> str:
        raise InputAsked(
            f"the program asks for input ({str(prompt).strip() or 'no prompt'}); a probe cannot answer"
        )

    builtins.input = refuse


def tame_torch(ledger: Ledger) -> None:
    """No compilation and no worker processes: the recorder must see every operator in this process."""
    import torch
    from torch.utils import data

    def compile_not(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        ledger.note("torch.compile is switched off during a probe")
        if isinstance(model, torch.nn.Module):
            # Programs ask a compiled module for the one it was made of; not as a submodule, which it would contain for ever.
            model.__dict__.setdefault("_orig_mod", model)
        return model if model is not None else lambda function: compile_not(function)

    torch.compile = compile_not
    make_iterator = getattr(data.DataLoader, "_get_iterator", None)
    if make_iterator is not None:
        data.DataLoader._get_iterator = _loading_here(make_iterator, ledger)


def _loading_here(make_iterator: Any, ledger: Ledger) -> Any:
    """Iterators of loaders that load in this process, and leave a loader as the program has made it."""

    def load_here(self: Any) -> Any:
        asked = {"num_workers": self.num_workers, "timeout": self.timeout}
        if not asked["num_workers"]:
            return make_iterator(self)
        ledger.note(f"DataLoader runs with num_workers=0 instead of {asked['num_workers']}")
        self.__dict__.update(num_workers=0, timeout=0)
        try:
            return make_iterator(self)
        finally:
            self.__dict__.update(asked)

    return load_here


def follow_parent(lifeline: int) -> None:
    """Ends this process group when the host dies: its end of the lifeline closes, and the kernel sends SIGKILL.

    The signal needs no Python code to run, so a program that never gives up the interpreter lock ends too.  Where the
    kernel has no such signal a thread waits for the end of the lifeline instead.
    """
    try:
        import fcntl

        if not hasattr(fcntl, "F_SETSIG"):
            raise OSError("no signal on hangup")
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgid(0))
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    except (ImportError, OSError, AttributeError):
        pass
    threading.Thread(
        target=_wait_for_hangup, args=(lifeline,), daemon=True, name="gradsight-lifeline"
    ).start()


@contextlib.contextmanager
def ending_with(endpoint: socket.socket) -> Iterator[None]:
    """Meanwhile the kernel ends this process when the other side of a connection closes, on which nothing is said yet."""
    try:
        import fcntl

        fcntl.fcntl(endpoint, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(endpoint, fcntl.F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(endpoint, fcntl.F_GETFL)
        fcntl.fcntl(endpoint, fcntl.F_SETFL, flags | os.O_ASYNC)
    except (ImportError, OSError, AttributeError):
        yield
        return
    with contextlib.suppress(BlockingIOError):
        # It may have closed before.
        if not endpoint.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
            _EXIT(137)
    yield
    fcntl.fcntl(endpoint, fcntl.F_SETFL, flags)


def follow_host(lifeline: socket.socket) -> None:
    """The same where no descriptor can be inherited: the host never speaks on this connection, and its end is the host's."""

    def wait() -> None:
        try:
            while lifeline.recv(64):
                continue
        except OSError:
            pass
        end_group()

    threading.Thread(target=wait, daemon=True, name="gradsight-lifeline").start()


def _wait_for_hangup(lifeline: int) -> None:
    try:
        while os.read(lifeline, 64):
            continue
    except OSError:
        # User code closed the descriptor: the kernel's signal or the host's deadline still hold.
        return
    end_group()


def end_group() -> None:
    """Kills this process and everything it started in its group."""
    try:
        if os.getpgid(0) == os.getpid():
            os.killpg(0, signal.SIGKILL)
    except (OSError, AttributeError):
        _EXIT(137)
    _EXIT(137)


def watch_deadline(seconds: float, expired: Callable[[], None]) -> None:
    """Calls `expired` from a thread of its own when the time is over."""

    def wait() -> None:
        end = time.monotonic() + seconds
        while (rest := end - time.monotonic()) > 0:
            _SLEEP(min(rest, 1.0))
        expired()

    threading.Thread(target=wait, daemon=True, name="gradsight-deadline").start()


_SLEEP, _EXIT = time.sleep, os._exit
