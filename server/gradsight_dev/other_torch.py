"""The probe's tests on another torch: `make test-torch TORCH=2.5.1`, or `TORCH=newest` for the latest release.

An environment of its own is made under build/, with that torch and NumPy and nothing else; the tests run in the usual one
and probe programs in the other.  What it prints last is a row of the table in docs/probe.md.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEWEST = "newest"
# Tests whose programs run in the probed interpreter; the others are about the host, or about the pinned torch.
TESTS = (
    "tests/probe/test_blame.py",
    "tests/probe/test_swallowed.py",
    "tests/probe/test_silent_verdicts.py",
    "tests/probe/test_libraries.py",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("torch", help="a version of torch, as pip names it")
    parser.add_argument("rest", nargs="*", help="options for pytest")
    args, rest = parser.parse_known_args()
    if not is_torch(args.torch):
        parser.error("say which torch: make test-torch TORCH=2.5.1")
    python = environment(args.torch)
    print(described(python), flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", *(args.rest or TESTS), *rest],
        cwd=ROOT,
        env={**os.environ, "GRADSIGHT_PROBED_PYTHON": str(python), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(done.stdout)
    counts = [line for line in done.stdout.splitlines() if re.search(r"\d+ (passed|failed)", line)]
    print(f"| {described(python)} | {counts[-1].strip('= ') if counts else 'no result'} |")
    return done.returncode


def is_torch(version: str) -> bool:
    """Whether this names a torch: a release, or the newest there is."""
    return version == NEWEST or re.fullmatch(r"\d+(\.\d+)+(\+\w+)?", version) is not None


def requirements(version: str) -> list[str]:
    """What is installed for a torch.  Releases before 2.3 were built against NumPy 1."""
    if version == NEWEST:
        return ["torch", "numpy"]
    is_old = tuple(int(part) for part in version.split("+")[0].split(".")[:2]) < (2, 3)
    return [f"torch=={version}", "numpy<2" if is_old else "numpy"]


def environment(version: str) -> Path:
    """The interpreter that has this torch; made when it is not there yet."""
    folder = ROOT / "build" / f"torch-{version}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if version != NEWEST and installed(python).split("+")[0] == version.split("+")[0]:
        return python
    venv.create(folder, with_pip=True, clear=version != NEWEST)
    command = [str(python), "-m", "pip", "install", "--upgrade", *requirements(version)]
    subprocess.run(command, check=True)
    return python


def installed(python: Path) -> str:
    """The version of torch in an interpreter; empty when there is none."""
    return answer(python, "import torch; print(torch.__version__)") if python.exists() else ""


def described(python: Path) -> str:
    """Which torch on which Python."""
    return f"{installed(python)} | {answer(python, 'import platform; print(platform.python_version())')}"


def answer(python: Path, question: str) -> str:
    """What an interpreter prints."""
    done = subprocess.run([str(python), "-c", question], capture_output=True, text=True, check=False)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
