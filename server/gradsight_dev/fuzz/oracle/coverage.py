"""Which lines of a program torch ever ran."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from gradsight_dev.fuzz.oracle.execution import run
from gradsight_dev.fuzz.oracle.steering import TooManyPaths, every_path


def lines_run(text: str, path: str = "<program>") -> set[int]:
    """The lines that were executed on any path."""
    code = compile(text, path, "exec")
    lines: set[int] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != path:
            return None
        if event == "line":
            lines.add(frame.f_lineno)
        return trace

    try:
        for steering in every_path(text, path):
            sys.settrace(trace)
            try:
                run(code, steering)
            finally:
                sys.settrace(None)
    except TooManyPaths:
        pass
    return lines
