"""A decoder of seventy billion parameters, probed without its memory.

    python benchmarks/probe_fake.py [--config PYTHON]

Forward, backward and an AdamW step run once clean and once with each planted hazard.  The promise: both hazards are
blamed on their lines, within one gigabyte and ninety seconds of processor time each.  With `--config` the model is not ours: an
interpreter that has transformers makes it by `AutoModelForCausalLM.from_config`.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Iterator
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
        agents = AgentUse()
        outcome = host.run(
            ProbeRequest(options.config or sys.executable, script=str(program), arguments=(plan,), fake=True),
            listen=agents.look,
        )
        agents.stop()
        megabytes, seconds = agents.megabytes, agents.seconds()
        if not isinstance(outcome, (Observed, Raised)):
            print(f"{plan}: {outcome}")
            return 1
        faults = [
            (fault["code"], lines[fault["location"]["row"] - 1].strip()) for fault in outcome.report["faults"]
        ]
        right = [found for found, _ in faults] == ([code] if code else [])
        right = right and all(line.endswith(f"# {plan}: written") for _, line in faults)
        kept = kept and right and megabytes <= LARGEST and seconds <= LONGEST
        print(f"{plan:6} {seconds:5.1f} s  {megabytes:5.0f} MB  {faults or 'no fault'}")
    print("promises hold" if kept else "a promise is broken")
    return 0 if kept else 1


class AgentUse:
    """The largest resident set of any agent, and the processor time of all: an agent may be no child of this process."""

    def __init__(self) -> None:
        self.megabytes = 0.0
        self._ticks: dict[str, int] = {}
        self._going = True
        self._old = {status.parent.name for status, _ in self._agents()}
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def seconds(self) -> float:
        """Processor time until the last look at each agent."""
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")

    def look(self, progress: object) -> None:
        """Progress is of no interest here."""

    def _agents(self) -> Iterator[tuple[Path, str]]:
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                if b"agent/boot.py" in (status.parent / "cmdline").read_bytes():
                    yield status, status.read_text()
            except OSError:
                continue

    def _watch(self) -> None:
        while self._going:
            for status, text in self._agents():
                if status.parent.name in self._old or "VmHWM:" not in text:
                    continue
                self.megabytes = max(self.megabytes, int(text.split("VmHWM:")[1].split()[0]) / 1024)
                try:
                    fields = (status.parent / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                self._ticks[status.parent.name] = int(fields[11]) + int(fields[12])
            time.sleep(0.1)

    def stop(self) -> None:
        self._going = False
        self._watcher.join()


if __name__ == "__main__":
    sys.exit(main())
