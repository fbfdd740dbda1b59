"""`gradsight prove FILE[:LINE]`: let torch decide about the findings of a file, without running the file itself."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from gradsight.cli import probe_arguments
from gradsight.cli.fix_json import FixBook
from gradsight.cli.opened import Opened, open_file
from gradsight.cli.progress import TerminalLine
from gradsight.cli.report_json import as_json
from gradsight.cli.report_text import put
from gradsight.cli.shell import CLEAN, FINDINGS, fail
from gradsight.model.finding import Finding
from gradsight.probe.document import document_of
from gradsight.probe.outcome import CouldNotRun, Outcome, Progress
from gradsight.probe.request import ProbeRequest
from gradsight.rules import rule_of
from gradsight.session.evidence import Verdict, told
from gradsight.session.fault_text import torchs_words
from gradsight.session.finding_text import Run as TextRun
from gradsight.session.finding_text import lay_out
from gradsight.session.probe_options import ProbeOptions
from gradsight.session.prober import Prober
from gradsight.session.proving import ProofOutcome, Prover, Subject, findings_on, program_of
from gradsight.session.reading import Unreadable, read_bytes
from gradsight.session.schedule import Urgency, Worker
from gradsight.session.shown_paths import shown_path

Result = TypeVar("Result")
_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?::\d+)?")
VERDICTS: dict[Verdict, str] = {
    "confirmed": "confirmed",
    "refuted": "refuted",
    "undecided": "undecided",
    "not-reached": "not reached",
}
EPILOG = """\
For each finding a minimal program is cut out of the file, with made-up inputs where nothing calls the function, and run.
Where the file cannot be cut, all of it is run.

exit codes: 0 nothing was confirmed, 1 torch confirmed a finding, 2 a wrong call or a Python without torch"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("place", metavar="FILE[:LINE]", help="a file, or the line of a finding in it")
    parser.add_argument("--format", choices=("text", "json"), default="text", dest="form")
    limits = ProbeOptions()
    probe_arguments.add(parser, limits.steps, limits.timeout)
    parser.add_argument("--seed", type=int, default=0, help="seed random, numpy and torch (0)")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colours in text (auto)")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Proves what is found; 0 nothing confirmed, 1 something confirmed, 2 could not run."""
    name, line = _place_of(args.place)
    if not os.path.exists(name):
        return fail(f"no such file: {name}")
    if os.path.isdir(name):
        return fail(f"{name} is a folder: name a file")
    if line is not None and name.endswith(".ipynb"):
        return fail("a notebook is proved as a whole: leave the line out")
    data = read_bytes(os.path.abspath(name))
    if isinstance(data, Unreadable):
        return fail(f"{name}: {data.reason}")
    opened = open_file(os.path.abspath(name))
    if opened is None:
        return fail(f"{name}: not Python that can be read")
    chosen = findings_on(opened.findings, line) if line is not None else list(opened.findings)
    if line is not None and not chosen:
        return fail(_nothing_here(name, line, opened.findings))
    request = replace(
        program_of(opened.source, _options(args), None),
        seed=args.seed,
        threads=args.threads,
        map_cuda=args.cpu,
    )
    proofs = asyncio.run(_prove(Subject(opened.source, request, opened.check), chosen)) if chosen else []
    refusal = next((proof.outcome for proof in proofs if isinstance(proof.outcome, CouldNotRun)), None)
    if refusal is not None:
        if refusal.detail != "torch":
            return fail(refusal.reason)
        return fail(f"no torch in {request.python} ({refusal.reason}): --python names another interpreter")
    if args.form == "json":
        json.dump(_document(opened, request, proofs), sys.stdout, indent=2, default=str)
        sys.stdout.write("\n")
    else:
        _print(opened, proofs, args.color)
    return FINDINGS if any(_is_fault(proof) for proof in proofs) else CLEAN


def _place_of(word: str) -> tuple[str, int | None]:
    """The file and the line that are meant; a file whose name looks like a place is a file."""
    found = _PLACE.fullmatch(word)
    if found is None or os.path.exists(word):
        return word, None
    return found["file"], int(found["line"])


def _options(args: argparse.Namespace) -> ProbeOptions:
    return ProbeOptions(args.python, timeout=args.timeout, memory=args.memory, steps=args.steps)


def _nothing_here(name: str, line: int, findings: Sequence[Finding]) -> str:
    lines = sorted({each.span.line for each in findings})
    if not lines:
        return f"no finding on line {line}: there is none in {name}"
    where = f"line{'' if len(lines) == 1 else 's'} {', '.join(map(str, lines))}"
    return f"no finding on line {line}: {name} has findings on {where}"


async def _prove(subject: Subject, findings: Sequence[Finding]) -> list[ProofOutcome]:
    """The proofs in the order of the findings; they end early where nothing can be run."""
    prober, worker, line = Prober(), Worker(), TerminalLine(sys.stderr)

    async def run_shown(request: ProbeRequest, title: str) -> Outcome:
        def show(progress: Progress) -> None:
            line.show(f"{title}: {progress.backwards} backward, {progress.seconds:.1f} s")

        line.show(title)
        return await prober.run(request, show)

    def aside(work: Callable[[], Result]) -> Awaitable[Result]:
        return worker.submit(Urgency.AWAITED, work)

    prover, proofs = Prover(run_shown, aside), []
    try:
        for number, finding in enumerate(findings, 1):
            counted = f" ({number} of {len(findings)})" if len(findings) > 1 else ""
            title = f"proving {finding.code} on line {finding.span.line}{counted}"
            proofs.append(await prover.prove(subject, finding, title))
            if isinstance(proofs[-1].outcome, CouldNotRun):
                break
    finally:
        prober.close()
        line.clear()
    return proofs


def _is_fault(proof: ProofOutcome) -> bool:
    return proof.verdict == "confirmed" and not rule_of(proof.finding.code).says_harmless


def _print(opened: Opened, proofs: Sequence[ProofOutcome], color: str) -> None:
    lines: list[list[TextRun]] = []
    for proof in proofs:
        lines += [*lay_out(_as_told(proof), opened.documents, remarks=_torchs_words(proof)), []]
    counts = _counts(proofs)
    torch = next((proof.evidence.torch for proof in proofs if proof.evidence is not None), "")
    summary = ", ".join(f"{count} {VERDICTS[verdict]}" for verdict, count in counts.items() if count)
    where = f" on torch {torch}" if torch else ""
    nothing = f"nothing to prove in {shown_path(opened.source.path)}"
    lines.append([(f"{summary}{where}" if summary else nothing, "faint")])
    put(lines, sys.stdout, color)


def _as_told(proof: ProofOutcome) -> Finding:
    """A finding in the words of its verdict."""
    if proof.evidence is None:
        return proof.finding
    shown = told(proof.finding, proof.evidence, proof.evidence.finding)
    if proof.verdict == "undecided":
        return replace(
            shown,
            message=f"undecided: it ran, but the run neither shows it nor rules it out: {shown.message}",
        )
    if proof.verdict == "not-reached":
        tried = "the program" if proof.runs == 1 else f"none of {proof.runs} programs"
        came = "did not come here" if proof.runs == 1 else "came here"
        return replace(shown, message=f"not reached: {tried} {came}: {shown.message}")
    return shown


def _torchs_words(proof: ProofOutcome) -> list[list[TextRun]]:
    said = proof.evidence.said if proof.evidence is not None else ""
    return [torchs_words(said)] if said else []


def _counts(proofs: Sequence[ProofOutcome]) -> dict[Verdict, int]:
    return {verdict: sum(proof.verdict == verdict for proof in proofs) for verdict in VERDICTS}


def _document(opened: Opened, request: ProbeRequest, proofs: Sequence[ProofOutcome]) -> dict[str, Any]:
    """Everything about the proofs as one object; each finding is in the shape of `gradsight check`."""
    fixes = FixBook(opened.documents)
    rows = []
    for proof in proofs:
        evidence, outcome = proof.evidence, document_of(proof.outcome)
        trail = evidence.finding.related if evidence is not None else proof.finding.related
        finding = replace(proof.finding, related=trail or proof.finding.related)
        rows.append(
            {
                **as_json(finding, opened.documents, fixes),
                "verdict": proof.verdict,
                "torch_said": evidence.said if evidence is not None else "",
                "extent": evidence.extent if evidence is not None else "",
                "runs": proof.runs,
                "outcome": outcome["outcome"],
                "error": outcome["error"],
                "program": proof.attempt.snippet,
            }
        )
    torch = next((proof.evidence.torch for proof in proofs if proof.evidence is not None), None)
    return {
        "filename": opened.source.path,
        "python": request.python,
        "torch": torch,
        "findings": rows,
        "verdicts": _counts(proofs),
    }
