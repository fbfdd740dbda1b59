"""`python -m gradsight_dev.fuzz_verdicts`: proves the findings of random programs, and asks torch whether each verdict is true.

Only findings of rules that torch raises for are weighed: a program that ends without an error refutes them, and one that ends with
an error of the rule's own kind confirms them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from gradsight.rules import rule_of
from gradsight_dev.attacks import error_of
from gradsight_dev.fuzz.engine import findings_of
from gradsight_dev.fuzz.grammar import generate

DECIDED = ("confirmed", "refuted")


@dataclass(slots=True)
class Verdicts:
    """What came of the findings that were weighed."""

    programs: int = 0
    weighed: int = 0
    decided: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, name: str, verdict: str, error: str) -> None:
        """Hold one verdict about a finding of a rule that torch raises for against what the program ended with."""
        self.weighed += 1
        self.decided += verdict in DECIDED
        if (verdict == "confirmed" and not error) or (verdict == "refuted" and error):
            self.wrong.append(f"{name}: {verdict}, and torch says {error or 'nothing'}")

    def __str__(self) -> str:
        return f"{self.programs} programs, {self.weighed} findings weighed, {self.decided} decided, {len(self.wrong)} wrong"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m gradsight_dev.fuzz_verdicts", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000, help="how many programs to run")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    given = parser.parse_args(arguments)
    found, seed, started = Verdicts(), given.start, time.monotonic()
    while found.programs < given.count and time.monotonic() - started < given.seconds:
        weigh(seed, found)
        seed += 1
    print(found)
    for text in found.wrong:
        print(text)
    return 1 if found.wrong else 0


def weigh(seed: int, found: Verdicts) -> None:
    """Prove the findings of one program."""
    program = generate(seed)
    loud = [
        finding
        for finding in findings_of(program.text, program.path)
        if finding.severity == "error" and rule_of(finding.code).torch_raises
    ]
    # Where several errors wait, the first one hides whether the others come.
    if len(loud) != 1:
        return
    found.programs += 1
    error = error_of(program.text)
    for code, line, verdict in proven(program.text):
        if (code, line) == (loud[0].code, loud[0].span.line):
            found.add(f"seed {seed}: {code} in line {line}", verdict, error)


def proven(text: str) -> list[tuple[str, int, str]]:
    """What `gradsight prove` says about each finding of a program."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "gradsight", "prove", str(path), "--format", "json", "--steps", "0"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        told = json.loads(ran.stdout) if ran.stdout.strip() else {"findings": []}
    return [(one["code"], one["location"]["row"], one.get("verdict") or "") for one in told["findings"]]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
