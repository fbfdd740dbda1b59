"""One program judged: by torch, and by the engine if it is asked."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass

from gradsight_dev.fuzz.compare import Comparison, compare
from gradsight_dev.fuzz.engine import findings_of
from gradsight_dev.fuzz.grammar import generate
from gradsight_dev.fuzz.oracle import Truth, judge
from gradsight_dev.fuzz.oracle.coverage import lines_of_uncalled
from gradsight_dev.fuzz.program import Program


@dataclass(frozen=True, slots=True)
class Case:
    """A program, the truth about it and the engine's answer."""

    program: Program
    truth: Truth
    comparison: Comparison | None
    crash: str = ""
    torch_seconds: float = 0.0
    engine_seconds: float = 0.0


def examine(seed: int, with_engine: bool) -> Case:
    """Generate, run and compare the program of one seed."""
    program = generate(seed)
    start = time.perf_counter()
    truth = judge(program.text, program.path)
    middle = time.perf_counter()
    if not with_engine:
        return Case(program, truth, None, torch_seconds=middle - start)
    comparison, crash = weigh(program.text, program.path, truth)
    return Case(program, truth, comparison, crash, middle - start, time.perf_counter() - middle)


def weigh(text: str, path: str, truth: Truth) -> tuple[Comparison | None, str]:
    """The engine's answer compared with the truth, or the traceback of the engine's own failure."""
    try:
        findings = findings_of(text, path)
    except Exception:
        return None, traceback.format_exc()
    comparison = compare(truth, findings)
    if comparison.result == "false alarm" and any(finding.certainty == "assumed" for finding in findings):
        # What would go wrong if somebody called it is not refuted by a program in which nobody does.
        uncalled = lines_of_uncalled(text, path)
        refutable = [
            finding
            for finding in findings
            if finding.certainty != "assumed" or finding.span.line not in uncalled
        ]
        comparison = compare(truth, refutable)
    return comparison, ""
