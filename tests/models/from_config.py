"""A decoder of seventy billion parameters, made by transformers from a configuration, is probed on fake tensors.

    python tests/models/from_config.py PYTHON_WITH_TRANSFORMERS

Run by `make test-models`.  The line that writes what backward needs must be named, and the sound plan must be clean.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).resolve().parents[2] / "fixtures" / "probe" / "llama_from_config.py"


def probed(python: str, plan: str) -> dict[str, Any]:
    """The document of `gradsight run --fake`."""
    command = [sys.executable, "-m", "gradsight", "run", "--fake", "--format", "json", "--timeout", "900"]
    done = subprocess.run(
        [*command, "--python", python, str(PROGRAM), plan], capture_output=True, text=True, check=False
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def main() -> int:
    python = sys.argv[1]
    lines = PROGRAM.read_text("utf-8").splitlines()
    written = next(number for number, line in enumerate(lines, 1) if "# order: written" in line)
    faults = probed(python, "order")["faults"]
    sound = probed(python, "sound")
    if written not in [fault["location"]["row"] for fault in faults]:
        print(f"line {written} is not named: {faults}")
        return 1
    if sound["outcome"] != "clean":
        print(f"the sound plan is {sound['outcome']}: {sound['error']} {sound['faults']}")
        return 1
    print("a model of seventy billion parameters from a configuration is probed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
