"""Which functions of a program torch never entered."""

from __future__ import annotations

import ast
import sys
from types import CodeType, FrameType
from typing import Any

from gradsight_dev.fuzz.oracle.execution import run
from gradsight_dev.fuzz.oracle.steering import TooManyPaths, every_path


def lines_of_uncalled(text: str, path: str = "<program>") -> set[int]:
    """The lines of the bodies of functions that no path enters; a line that is skipped where others run is not among them."""
    bodies = {
        node.body[0].lineno: set(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    entered = _lines_run(compile(text, path, "exec"), text)
    return {line for body in bodies.values() if not body & entered for line in body}


def _lines_run(code: CodeType, text: str) -> set[int]:
    path = code.co_filename
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
