"""Who names the line: the probe and torch's anomaly mode, side by side on the raising programs of the fixtures.

    python benchmarks/probe_blame.py

For every program whose backward fails because of a write: does the answer contain the line that saved, the line that
wrote, the line of the backward?  Anomaly mode is taken at its word: a line counts when its traceback shows it anywhere.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from gradsight.probe.outcome import Observed, Raised
from gradsight.probe.request import ProbeRequest
from gradsight.probe.standby import Standby

PROGRAMS = Path(__file__).resolve().parents[1] / "fixtures" / "probe" / "raising"
ASKED = ("saved", "fault", "needed")


def main() -> int:
    programs = [path for path in sorted(PROGRAMS.glob("*.py")) if set(ASKED) <= set(marked_lines(path))]
    standby = Standby()
    found = {"probe": dict.fromkeys(ASKED, 0), "anomaly": dict.fromkeys(ASKED, 0)}
    missed = []
    for path in programs:
        lines = marked_lines(path)
        for who, seen in (("probe", probe_lines(standby, path)), ("anomaly", anomaly_lines(path))):
            for asked in ASKED:
                hit = bool(lines[asked] & seen.get(asked, set()))
                found[who][asked] += hit
                if who == "probe" and not hit:
                    missed.append(f"{path.stem}: {asked}")
    standby.drop()
    print(f"{len(programs)} programs whose backward fails because of a write")
    print(f"{'':10}{'saved':>8}{'written':>9}{'backward':>10}")
    for who, counts in found.items():
        print(f"{who:10}{counts['saved']:>8}{counts['fault']:>9}{counts['needed']:>10}")
    for line in missed:
        print(f"missed by the probe: {line}")
    right = found["probe"]["fault"] / len(programs)
    print(f"the probe names the writing line in {right:.0%}")
    return 0 if right >= 0.95 else 1


def marked_lines(path: Path) -> dict[str, set[int]]:
    """The lines that the comments of a program mark, by role."""
    marks: dict[str, set[int]] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        for word in re.findall(r"\b(saved|fault|needed)\b", line.partition("  # ")[2]):
            marks.setdefault(word, set()).add(number)
    return marks


def probe_lines(standby: Standby, path: Path) -> dict[str, set[int]]:
    """The lines the probe answers with."""
    outcome = standby.run(ProbeRequest(sys.executable, script=str(path), timeout=60))
    seen: dict[str, set[int]] = {}
    if isinstance(outcome, (Observed, Raised)):
        for fault in outcome.report["faults"]:
            seen.setdefault("fault", set()).add(fault["location"]["row"])
            for step in fault["related"]:
                seen.setdefault(step["role"], set()).add(step["location"]["row"])
    return seen


def anomaly_lines(path: Path) -> dict[str, set[int]]:
    """The lines of the program in the forward traceback of anomaly mode, and in the traceback of the error."""
    code = "import runpy, sys, torch\ntorch.autograd.set_detect_anomaly(True)\nrunpy.run_path(sys.argv[1], run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    forward, _, error = done.stderr.rpartition("Traceback (most recent call last)")
    pattern = re.compile(rf'File "{re.escape(str(path))}", line (\d+)')
    shown = {int(number) for number in pattern.findall(forward)}
    raised = {int(number) for number in pattern.findall(error)}
    return {"saved": shown, "fault": shown | raised, "needed": raised}


if __name__ == "__main__":
    sys.exit(main())
