"""What `gradsight.watch()` costs: processor time of three training loops, plain, watched, and with one step in a hundred.

    python benchmarks/watch_overhead.py [--rounds N]

Every measurement runs in a forked child with one thread; the ways are interleaved round by round, and the table shows the
median of the ratios to the plain run of the same round.  The last line says whether the promises hold: at most 1.1 on the
CNN and the transformer, and 1.05 with `every=100`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from probe_overhead import WORKLOADS, keep_memory

NAMES = ("tiny_mlp", "small_cnn", "transformer")
WAYS: dict[str, int] = {"plain": 0, "watched": 1, "every=100": 100}
PROMISED = {"watched": 1.1, "every=100": 1.05}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--workloads", default=",".join(NAMES))
    options = parser.parse_args()
    import torch
    import torch._dynamo  # optimizers import it: that must not count

    torch.set_num_threads(1)
    names = options.workloads.split(",")
    ratios: dict[tuple[str, str], list[float]] = {}
    for _ in range(options.rounds):
        for name in names:
            seconds = {way: measured(name, every) for way, every in WAYS.items()}
            for way in WAYS:
                ratios.setdefault((name, way), []).append(seconds[way] / seconds["plain"])
    print(f"torch {torch.__version__}, one thread, median of {options.rounds} rounds, processor time")
    print(f"{'':14}" + "".join(f"{way:>12}" for way in WAYS))
    broken = []
    for name in names:
        found = {way: statistics.median(ratios[name, way]) for way in WAYS}
        print(f"{name:14}" + "".join(f"{found[way]:>11.2f}x" for way in WAYS))
        if name != "tiny_mlp":
            broken += [
                f"{way} costs {found[way]:.2f} on {name}" for way in PROMISED if found[way] > PROMISED[way]
            ]
    print("promises hold" if not broken else "; ".join(broken))
    return 1 if broken else 0


def measured(name: str, every: int) -> float:
    """Processor seconds of one run in a child of this process."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.write(writer, json.dumps(run(name, every)).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    return float(json.loads(data))


def run(name: str, every: int) -> float:
    """Runs one workload in this process and gives its processor seconds."""
    import gradsight
    from gradsight.agent.sites import claim_file

    keep_memory()
    path = WORKLOADS / f"{name}.py"
    claim_file(str(path))
    code = compile(Path(path).read_text("utf-8"), str(path), "exec")
    space: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    watch = gradsight.watch(every=every, report=False) if every else None
    begun = time.process_time()
    exec(code, space)
    spent = time.process_time() - begun
    if watch is not None:
        watch.stop()
    return spent


if __name__ == "__main__":
    sys.exit(main())
