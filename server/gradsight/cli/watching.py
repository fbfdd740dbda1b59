"""`check --watch`: check again whenever a file has changed, until the user ends it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable

PAUSE = 0.5
CLEAR = "\x1b[2J\x1b[H"


def watch(paths: Callable[[], Iterable[str]], run: Callable[[], int], pause: float = PAUSE) -> int:
    """Run, then again after each change; ends with the keyboard, and then with what the last run gave."""
    code = 0
    before: dict[str, int] | None = None
    try:
        while True:
            now = {path: changed_at(path) for path in paths()}
            if now != before:
                before = now
                if sys.stdout.isatty():
                    sys.stdout.write(CLEAR)
                code = run()
                sys.stdout.write("watching for changes, end with Ctrl+C\n")
                sys.stdout.flush()
            time.sleep(pause)
    except KeyboardInterrupt:
        return code


def changed_at(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
