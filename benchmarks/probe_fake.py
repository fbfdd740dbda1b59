"""A decoder of seventy billion parameters, probed without its memory.

    python benchmarks/probe_fake.py [--config PYTHON]

Forward, backward and an AdamW step run once clean and once with each planted hazard.  The promise: both hazards are
blamed on their lines, within one gigabyte and ninety seconds of processor time each.  With `--config` the model is not ours: an
interpreter that has transformers makes it by `AutoModelForCausalLM.from_config`.
"""

from __future__ import annotations

import argparse
import resource
import sys
import threading
import time
from pathlib import Path

from gradsight.probe import host
from gradsight.probe.outcome import Observed, Raised
from gradsight.probe.request import ProbeRequest

PROGRAMS = Path(__file__).resolve().parents[1] / "fixtures" / "probe"
OWN = PROGRAMS / "llama_seventy_billion.py"
FROM_CONFIG = PROGRAMS / "llama_from_config.py"
PLANS = {"clean": "", "gate": "GS101", "order": "GS106"}
PLANS_FROM_CONFIG = {"clean": "", "hidden": "GS101", "order": "GS106"}
LARGEST, LONGEST = 1024.0, 90.0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", metavar="PYTHON", help="an interpreter with transformers")
    parser.add_argument("--plan", action="append", help="only this one")
    options = parser.parse_args()
    program, plans = (FROM_CONFIG, PLANS_FROM_CONFIG) if options.config else (OWN, PLANS)
    lines = program.read_text("utf-8").splitlines()
    kept = True
    for plan, code in plans.items():
        if options.plan and plan not in options.plan:
            continue
        memory = PeakMemory()
        begun = children_seconds()
        outcome = host.run(
            ProbeRequest(options.config or sys.executable, script=str(program), arguments=(plan,), fake=True),
            listen=memory.look,
        )
        seconds = children_seconds() - begun
        memory.stop()
        if not isinstance(outcome, (Observed, Raised)):
            print(f"{plan}: {outcome}")
            return 1
        faults = [
            (fault["code"], lines[fault["location"]["row"] - 1].strip()) for fault in outcome.report["faults"]
        ]
        right = [found for found, _ in faults] == ([code] if code else [])
        right = right and all(line.endswith(f"# {plan}: written") for _, line in faults)
        kept = kept and right and memory.megabytes <= LARGEST and seconds <= LONGEST
        print(f"{plan:6} {seconds:5.1f} s  {memory.megabytes:5.0f} MB  {faults or 'no fault'}")
    print("promises hold" if kept else "a promise is broken")
    return 0 if kept else 1


def children_seconds() -> float:
    """Processor time of the agents that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class PeakMemory:
    """The largest resident set of any agent that this process has started."""

    def __init__(self) -> None:
        self.megabytes = 0.0
        self._going = True
        threading.Thread(target=self._watch, daemon=True).start()

    def look(self, progress: object) -> None:
        """Progress is of no interest here."""

    def _watch(self) -> None:
        while self._going:
            for status in Path("/proc").glob("[0-9]*/status"):
                try:
                    text = status.read_text()
                    command = (status.parent / "cmdline").read_bytes()
                except OSError:
                    continue
                if b"agent/boot.py" in command and "VmHWM:" in text:
                    peak = int(text.split("VmHWM:")[1].split()[0]) / 1024
                    self.megabytes = max(self.megabytes, peak)
            time.sleep(0.1)

    def stop(self) -> None:
        self._going = False


if __name__ == "__main__":
    sys.exit(main())
