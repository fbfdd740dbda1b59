"""The interpreter that a probe would use, and what it has, without running any code of the user's."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

from gradsight.ops.environment import installed_torch

PATIENCE = 20.0
# Any Python since 3.3 answers.  `-I`: nothing in the working folder takes part; the torch itself is not imported.
_QUESTION = """
import sys, platform
from importlib import metadata
try:
    torch = metadata.version("torch")
except Exception:
    torch = ""
sys.stdout.write("python\\n%s\\n%s\\n" % (platform.python_version(), torch))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter as it describes itself; an empty version means that it cannot be run, an empty torch that it has none."""

    path: str
    version: str = ""
    torch: str = ""


def resolve(chosen: str) -> str:
    """The interpreter that is meant: a path, or the first on the PATH with this name."""
    for name in (chosen,) if chosen else ("python3", "python"):
        found = shutil.which(name)
        if found is not None:
            return os.path.abspath(found)
    return chosen or "python3"


def inspect(path: str) -> Interpreter:
    """Ask an interpreter for its version and for the version of its torch."""
    try:
        done = subprocess.run(
            [path, "-I", "-c", _QUESTION],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return Interpreter(path)
    answer = done.stdout.split("\n")
    if done.returncode != 0 or len(answer) < 3 or answer[0] != "python":
        return Interpreter(path)
    return Interpreter(path, answer[1], answer[2] or (installed_torch(path) or ""))
