"""How long a probe takes from the command to its verdict: a fresh interpreter against the warm one.

    python benchmarks/probe_start.py [--repeats N]

The program has thirty lines and trains a small network for three steps.  The promise: warm is at most a fifth of cold.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from gradsight.probe import host
from gradsight.probe.outcome import Observed, Outcome
from gradsight.probe.request import ProbeRequest
from gradsight.probe.standby import Standby

PROGRAM = Path(__file__).resolve().parent / "workloads" / "thirty_lines.py"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    request = ProbeRequest(sys.executable, script=str(PROGRAM), timeout=60)
    standby = Standby()
    standby.run(request)
    cold, warm = [], []
    for _ in range(repeats):
        cold.append(timed(lambda: host.run(request)))
        warm.append(timed(lambda: standby.run(request)))
    standby.drop()
    ratio = statistics.median(warm) / statistics.median(cold)
    print(
        f"cold {statistics.median(cold):.2f} s, warm {statistics.median(warm) * 1000:.0f} ms, ratio {ratio:.3f}"
    )
    return 0 if ratio <= 0.2 else 1


def timed(run: Callable[[], Outcome]) -> float:
    begun = time.perf_counter()
    outcome = run()
    spent = time.perf_counter() - begun
    if not isinstance(outcome, Observed):
        raise RuntimeError(f"the program did not run: {outcome}")
    return spent


if __name__ == "__main__":
    sys.exit(main())
