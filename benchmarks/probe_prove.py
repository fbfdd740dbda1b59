"""How many findings a minimal program proves: cut out of the file, with made-up inputs where nothing calls the function.

    python benchmarks/probe_prove.py [--every N] [--only NAME] [--library]

Every finding of the labelled programs is cut out and run, as the editor's command does it.  With `--library` the program
loses everything but its functions and classes first, so that nothing in it leads to the finding by itself.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import time
from collections import Counter
from pathlib import Path

from gradsight.analysis import analyze
from gradsight.model.finding import Finding
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.probe.document import document_of
from gradsight.probe.minimal import cut_out
from gradsight.probe.outcome import Outcome
from gradsight.probe.request import ProbeRequest
from gradsight.probe.standby import Standby
from gradsight.session.proofs import attempts
from gradsight.session.traces import traces_of
from gradsight.session.verdicts import judge, visited_lines

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth program")
    parser.add_argument("--only", default="", metavar="NAME", help="only programs with this in their name")
    parser.add_argument("--library", action="store_true", help="leave only functions and classes")
    parser.add_argument("--show", action="store_true", help="print the programs")
    args = parser.parse_args()
    labels = json.loads((FIXTURES / "labels.json").read_text("utf-8"))
    standby = Standby()
    score: Counter[str] = Counter()
    shorter: list[float] = []
    begun = time.perf_counter()
    for label in labels[:: args.every]:
        path = FIXTURES / "programs" / label["file"]
        if args.only not in path.name or label["verdict"] == "safe":
            continue
        text = path.read_text("utf-8")
        source = Source(str(path), library_of(text) if args.library else text)
        findings = [each for each in analyze(source, Settings()).findings if each.severity != "hint"]
        for finding in {(each.code, each.span.line): each for each in findings}.values():
            verdict, tries, snippet = prove(standby, source, finding)
            score[verdict] += 1
            score["all"] += 1
            if verdict == "confirmed":
                shorter.append(len(snippet.splitlines()) / len(text.splitlines()))
            else:
                print(f"{verdict}: {path.name}:{finding.span.line} {finding.code} ({tries} attempts)")
            if args.show:
                print(f"# {verdict}\n{snippet}")
    standby.drop()
    print(
        f"{score['confirmed']} of {score['all']} findings proved by a minimal program"
        f" ({time.perf_counter() - begun:.0f} s)"
    )
    if shorter:
        print(f"the minimal program has {sorted(shorter)[len(shorter) // 2]:.0%} of the lines (median)")
    return 0


def library_of(text: str) -> str:
    """The definitions and imports of a program; other lines are empty, so that line numbers stay."""
    lines = text.split("\n")
    kept = [""] * len(lines)
    for statement in ast.parse(text).body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            first = min(
                [statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", []))]
            )
            last = statement.end_lineno or first
            kept[first - 1 : last] = lines[first - 1 : last]
    return "\n".join(kept)


def prove(standby: Standby, source: Source, finding: Finding) -> tuple[str, int, str]:
    """The verdict, the number of programs it took, and the last of them."""
    minimal = cut_out(source, finding, lambda changed: analyze(changed, Settings()))
    verdict, tries, snippet = "not-reached", 0, ""
    programs = attempts(minimal, finding, source.text)
    outcome: Outcome | None = None
    while (attempt := programs.next(outcome)) is not None:
        tries += 1
        request = ProbeRequest(
            sys.executable, script=source.path, text=attempt.text, timeout=30, steps=30, seed=0, touches=True
        )
        outcome = standby.run(request)
        report = getattr(outcome, "report", None) or {}
        judged = judge(
            [finding],
            document_of(outcome),
            visited_lines(report),
            source.text,
            source.path,
            traces_of(report),
        )
        verdict, snippet = judged[0].verdict, attempt.snippet
        if verdict == "confirmed" or (verdict == "refuted" and not attempt.is_made_up):
            break
    return verdict, tries, snippet


if __name__ == "__main__":
    sys.exit(main())
