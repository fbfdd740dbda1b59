"""Loading the operator facts, as a ratio to starting Python and doing nothing.

Run: python benchmarks/facts_load.py [ROUNDS].  Times are the CPU seconds of the best of many interleaved starts; only the
ratio is meant to travel.  Ends with 1 when loading costs as much as the bare start, which takes about 15 ms.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

ROUNDS = 15
BAR = 2.0
NOTHING = "pass"
LOADING = "from gradsight.ops.table import shipped; shipped()"
ASKING = "from gradsight.ops.table import shipped; t = shipped(); t.find('torch.exp'); t.find('nn.LSTM'); t.find('Tensor.mul_')"


def main(arguments: list[str]) -> int:
    """Print milliseconds beyond a bare start, and the ratio."""
    best = measured((NOTHING, LOADING, ASKING), int(arguments[0]) if arguments else ROUNDS)
    bare, loading, asking = best[NOTHING], best[LOADING], best[ASKING]
    answer = {
        "python -c pass": f"{1000 * bare:.1f} ms",
        "load": f"+{1000 * (loading - bare):.1f} ms",
        "load and look up three operators": f"+{1000 * (asking - bare):.1f} ms",
        "ratio": f"{loading / bare:.2f}",
    }
    print(json.dumps(answer, indent=2))
    return 0 if loading / bare < BAR else 1


def measured(programs: tuple[str, ...], rounds: int) -> dict[str, float]:
    """The best start-to-end time of each program, in seconds of CPU."""
    best = dict.fromkeys(programs, float("inf"))
    for _ in range(rounds):
        for program in programs:
            best[program] = min(best[program], cpu_seconds(program))
    return best


def cpu_seconds(program: str) -> float:
    """User and system time of one interpreter that runs the program; wall time where the platform has no accounting."""
    command = [sys.executable, "-I", "-c", program]
    if not hasattr(os, "wait4"):
        started = time.perf_counter()
        subprocess.run(command, check=True)
        return time.perf_counter() - started
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
