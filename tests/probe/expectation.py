"""What a program of the fixtures expects, read from its comments, and the one check of a probe against it.

A comment at the end of a line lists what happens there: `fault: GS101` (the probe must speak on this line), a role
(`saved`, `written`, `needed`, `cut`, `made`, `read`, `call`: a step of the fault's trail), `raises: text` (torch ends the
program here, with this text).  A program without such comments must come out clean.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from gradsight.probe.outcome import Observed, Outcome, Raised
from gradsight.probe.request import Level, ProbeRequest
from gradsight.probe.standby import Standby

# The interpreter that is probed: another one has another torch.
PYTHON = os.environ.get("GRADSIGHT_PROBED_PYTHON") or sys.executable
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "probe"
ROLES = ("saved", "written", "needed", "cut", "made", "read", "call")
_COMMENT = re.compile(r"  # ([^#]*)$")


@dataclass
class Expectation:
    """Lines by what is expected on them."""

    faults: set[tuple[str, int]] = field(default_factory=set)
    roles: set[tuple[str, int]] = field(default_factory=set)
    raises: tuple[str, int] | None = None


def expected_of(text: str) -> Expectation:
    """The expectation that the comments of a program write down."""
    expectation = Expectation()
    for number, line in enumerate(text.splitlines(), start=1):
        match = _COMMENT.search(line)
        for part in match.group(1).split(", ") if match else ():
            word, _, rest = part.partition(": ")
            if word == "fault":
                expectation.faults.add((rest, number))
            elif word == "raises":
                expectation.raises = (rest, number)
            elif word in ROLES:
                expectation.roles.add((word, number))
    return expectation


def programs(kind: str) -> list[Path]:
    """The programs of one folder of the fixtures."""
    return sorted((FIXTURES / kind).glob("*.py"))


def check(standby: Standby, path: Path, level: Level = "default") -> None:
    """Probes a program and compares every fault, every step of its trail and the error with its comments."""
    expected = expected_of(path.read_text("utf-8"))
    outcome = probe(standby, path, level)
    assert isinstance(outcome, (Observed, Raised)), outcome
    report = outcome.report
    assert report["internal_error"] == ""
    found = {(fault["code"], fault["location"]["row"]) for fault in report["faults"]}
    if (
        len(expected.faults) > 1
        and expected.raises
        and any("the first is named" in each for each in report["notes"])
    ):
        # An older torch: what it would have refused next is not known.
        assert found
        assert found <= expected.faults
        return
    assert found == expected.faults
    steps = {
        (step["role"], step["location"]["row"]) for fault in report["faults"] for step in fault["related"]
    }
    assert expected.roles <= steps, f"missing {expected.roles - steps} in {steps}"
    if expected.raises is None:
        assert report["error"] is None
    else:
        text, line = expected.raises
        assert text in report["error"]["message"]
        assert report["error"]["location"]["row"] == line


def probe(standby: Standby, path: Path, level: Level = "default", **options: object) -> Outcome:
    """One probe in the warm interpreter."""
    return standby.run(ProbeRequest(PYTHON, script=str(path), timeout=60, level=level, seed=0, **options))  # type: ignore[arg-type]
