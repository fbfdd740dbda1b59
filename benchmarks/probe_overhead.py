"""What the probe costs: CPU time of three training loops, plain, under torch's anomaly mode, and under each level.

    python benchmarks/probe_overhead.py [--repeats N]

Every measurement runs in a forked child, one thread, in interleaved order; the table shows medians as multiples of the
plain run.  The last line says whether the promises hold: `--fast` below anomaly mode everywhere and at most 1.2 on the
CNN and the transformer, the default at most 1.5 there.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import sys
import time
from pathlib import Path

WORKLOADS = Path(__file__).resolve().parent / "workloads"
NAMES = ("tiny_mlp", "small_cnn", "transformer")
# Options of mallopt(3).
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
MODES = ("plain", "anomaly", "fast", "default", "deep")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--workloads", default=",".join(NAMES))
    args = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    import torch._dynamo  # optimizers import it: that must not count

    modes = args.modes.split(",")
    names = args.workloads.split(",")
    seconds: dict[tuple[str, str], list[float]] = {}
    for _ in range(args.repeats):
        for name in names:
            for mode in modes:
                seconds.setdefault((name, mode), []).append(measured(name, mode))
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, one thread, median of {args.repeats}")
    print(f"{'':14}" + "".join(f"{mode:>10}" for mode in modes))
    ratios = {}
    for name in names:
        plain = statistics.median(seconds[name, "plain"])
        for mode in modes:
            # The runs of one round are neighbours in time, so a busy machine slows them alike.
            pairs = zip(seconds[name, mode], seconds[name, "plain"])
            ratios[name, mode] = statistics.median(taken / beside for taken, beside in pairs)
        print(
            f"{name:14}"
            + "".join(f"{ratios[name, mode]:>9.2f}x" for mode in modes)
            + f"   plain {plain:.2f} s"
        )
    return verdict(ratios, names, modes)


def verdict(ratios: dict[tuple[str, str], float], names: list[str], modes: list[str]) -> int:
    """Whether the promises of the manual hold in this run."""
    broken = []
    for name in names:
        if {"fast", "anomaly"} <= set(modes) and ratios[name, "fast"] >= ratios[name, "anomaly"]:
            broken.append(f"--fast is not below anomaly mode on {name}")
        if name != "tiny_mlp":
            if "fast" in modes and ratios[name, "fast"] > 1.2:
                broken.append(f"--fast costs {ratios[name, 'fast']:.2f} on {name}")
            if "default" in modes and ratios[name, "default"] > 1.5:
                broken.append(f"the default costs {ratios[name, 'default']:.2f} on {name}")
    print("promises hold" if not broken else "; ".join(broken))
    return 1 if broken else 0


def measured(name: str, mode: str) -> float:
    """CPU seconds of one run in a child of this process."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        status = 1
        try:
            os.write(writer, json.dumps(run(name, mode)).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    data = b""
    while piece := os.read(reader, 4096):
        data += piece
    os.close(reader)
    os.waitpid(pid, 0)
    return float(json.loads(data))


def keep_memory() -> None:
    """Have the allocator keep what it has: when it gives memory back and asks again is chance, and costs as much as work."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        for option in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
            libc.mallopt(option, 1 << 30)


def run(name: str, mode: str) -> float:
    """Runs one workload in this process and gives its CPU seconds."""
    import torch

    keep_memory()

    path = str(WORKLOADS / f"{name}.py")
    source = Path(path).read_text("utf-8")
    space = {"__name__": "__main__", "__file__": path}
    if mode in ("plain", "anomaly"):
        code = compile(source, path, "exec")
        with torch.autograd.set_detect_anomaly(mode == "anomaly"):
            begun = time.process_time()
            exec(code, space)
            return time.process_time() - begun
    from gradsight.agent.content import Contents
    from gradsight.agent.faults import Ledger
    from gradsight.agent.features import detect
    from gradsight.agent.full_instruments import FullInstruments
    from gradsight.agent.instruments import FastInstruments
    from gradsight.agent.limits import RunLimits
    from gradsight.agent.sites import claim_file

    claim_file(path)
    ledger = Ledger()
    governor = RunLimits(0, lambda: None)
    instruments = FastInstruments(ledger, governor) if mode == "fast" else FullInstruments(ledger, governor)
    instruments.install(detect())
    code = instruments.compile(source, path)
    with instruments.running():
        begun = time.process_time()
        if mode == "deep":
            with Contents(instruments.log, ledger, instruments.backwards, checks=True).installed():
                exec(code, space)
        else:
            exec(code, space)
        spent = time.process_time() - begun
    # Batch norm changes its saved statistics; the deep look drops that only after its second run.
    faults = [fault for fault in ledger.faults if not fault.evidence.get("content_changed")]
    if faults or ledger.problems:
        raise RuntimeError(f"{name} under {mode}: {ledger.faults} {ledger.problems}")
    return spent


if __name__ == "__main__":
    sys.exit(main())
