"""What a program asks to be called at its end, by `atexit`: it is called while the program is still watched."""

from __future__ import annotations

import atexit
import contextlib
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from gradsight.agent.sites import is_user_file

PATIENCE = 5.0
"""So many seconds all calls at the end have: what the program did is known by then, and waits to be reported."""


class OutOfPatience(BaseException):
    """The calls at the end take too long."""


@contextlib.contextmanager
def called_at_the_end() -> Iterator[None]:
    """Calls what user code registers in this block when the block is left, the last one first, as Python does.

    What libraries register stays with `atexit`.  An error in such a call is printed, and the others are called; where they do
    not come back, they are left.
    """
    waiting: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []
    module: Any = atexit
    register, unregister = atexit.register, atexit.unregister

    def registering(func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        if not is_user_file(sys._getframe(1).f_code.co_filename):
            return register(func, *args, **kwargs)
        waiting.append((func, args, kwargs))
        return func

    def unregistering(func: Callable[..., Any]) -> None:
        waiting[:] = [entry for entry in waiting if entry[0] != func]
        unregister(func)

    module.register, module.unregister = registering, unregistering
    try:
        yield
    finally:
        try:
            with limited_patience():
                while waiting:
                    func, args, kwargs = waiting.pop()
                    try:
                        func(*args, **kwargs)
                    except Exception:
                        traceback.print_exc()
        except OutOfPatience:
            print(f"gradsight: a call at the end did not come back in {PATIENCE:g} s", file=sys.stderr)
        finally:
            module.register, module.unregister = register, unregister


@contextlib.contextmanager
def limited_patience() -> Iterator[None]:
    """Breaks this block off when its time is over, where the system can: in the main thread, by an alarm."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: object) -> None:
        raise OutOfPatience

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
