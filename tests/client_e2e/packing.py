"""The .vsix for this kind of machine, packed by the README's own command, once for all workers of a run."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

from tests.house.tree import ROOT


def packed() -> Path:
    """Run `make vsix`, unless another worker of this run has; the file that it names."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    note = ROOT / "build" / "vsix-of-this-run"
    note.parent.mkdir(exist_ok=True)
    with (ROOT / "build" / "vsix.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = note.read_text().split("\n") if note.exists() else [""]
        if known[0] == run:
            return Path(known[1])
        # The tests may run under a make of their own, which would have this one tell where it works.
        surroundings = {
            name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")
        }
        done = subprocess.run(
            ["make", "vsix"], cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        made = Path(done.stdout.strip().splitlines()[-1])
        note.write_text(f"{run}\n{made}")
    return made
