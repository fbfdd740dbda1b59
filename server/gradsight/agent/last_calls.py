"""What a program asks to be called at its end, by `atexit`: it is called while the program is still watched."""

from __future__ import annotations

import atexit
import contextlib
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from gradsight.agent.sites import is_user_file


@contextlib.contextmanager
def called_at_the_end() -> Iterator[None]:
    """Calls what user code registers in this block when the block is left, the last one first, as Python does.

    What libraries register stays with `atexit`.  An error in such a call is printed, and the others are called.
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
        while waiting:
            func, args, kwargs = waiting.pop()
            try:
                func(*args, **kwargs)
            except Exception:
                traceback.print_exc()
        module.register, module.unregister = register, unregister
