"""`gradsight run`: the user's program under the probe, and what torch did with it."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from pathlib import Path
from typing import Any

from gradsight.cli import probe_arguments
from gradsight.cli.progress import TerminalLine
from gradsight.cli.run_predictions import with_predictions
from gradsight.cli.run_sarif import sarif_of
from gradsight.cli.shell import fail
from gradsight.probe import deep, host, ranks
from gradsight.probe.document import document_of, exit_code_of
from gradsight.probe.outcome import CouldNotRun, Observed, Outcome, Progress, Raised, Streams
from gradsight.probe.request import Level, ProbeRequest
from gradsight.rules import rule_of
from gradsight.session.probe_fixes import with_remedies


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options come before the program; what follows the program belongs to it."""
    parser.usage = "gradsight run [options] SCRIPT [ARGS…]  |  -m MODULE [ARGS…]  |  -c CODE [ARGS…]"
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="SCRIPT", help="a script or notebook, and its arguments"
    )
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    parser.add_argument("-c", dest="code", nargs=argparse.REMAINDER, help="run this code, as python -c does")
    parser.add_argument("--format", choices=("text", "json", "sarif"), default="text", dest="form")
    probe_arguments.add(parser)
    parser.add_argument("--seed", type=int, default=None, help="seed random, numpy and torch")
    parser.add_argument(
        "--graph",
        type=Path,
        default=None,
        metavar="FILE",
        help="draw the graph around the first fault (.svg or .dot)",
    )
    parser.add_argument(
        "--nproc",
        type=probe_arguments.count,
        default=0,
        metavar="N",
        help="run N processes under torch.distributed.run",
    )
    attention = parser.add_mutually_exclusive_group()
    attention.add_argument("--fast", action="store_true", help="blame for errors only, at the lowest cost")
    attention.add_argument(
        "--deep", action="store_true", help="also compare contents and gradients; runs the program again"
    )
    attention.add_argument(
        "--fake", action="store_true", help="run without memory and arithmetic, for huge models"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the program and prints the report; 0 clean, 1 faults, 2 could not run."""
    chosen = _chosen(args)
    if isinstance(chosen, str):
        return fail(chosen)
    if args.graph is not None and args.graph.suffix not in (".svg", ".dot"):
        return fail("--graph writes .svg or .dot files")
    request = _request(args, chosen)
    outcome = _execute(request, args)
    texts = {"<string>": request.code} if request.code is not None else {}
    document = with_remedies(document_of(outcome), texts)
    if not (args.fast or args.fake or args.nproc):
        document = with_predictions(document, outcome, request.script)
    if isinstance(outcome, CouldNotRun) and outcome.detail == "torch":
        document["notes"].append(f"it was tried in {request.python}: --python names another interpreter")
    if args.graph is not None:
        problem = _draw(outcome, document, texts, args.graph)
        if problem:
            document["notes"].append(problem)
    _print(document, texts, args.form)
    return exit_code_of(document)


def _chosen(args: argparse.Namespace) -> dict[str, Any] | str:
    given = [name for name in ("program", "module", "code") if getattr(args, name)]
    if len(given) != 1:
        return "say what to run: a script, -m MODULE or -c CODE"
    name = given[0]
    first, *rest = getattr(args, name)
    if name == "program":
        if first.startswith("-"):
            return f"unknown option {first}; options come before the script"
        return {"script": str(Path(first).absolute()), "arguments": tuple(rest)}
    return {name: first, "arguments": tuple(rest)}


def _request(args: argparse.Namespace, chosen: dict[str, Any]) -> ProbeRequest:
    level: Level = "fast" if args.fast else "deep" if args.deep else "default"
    return ProbeRequest(
        python=args.python,
        level=level,
        fake=args.fake,
        map_cuda=args.cpu,
        steps=args.steps,
        timeout=args.timeout,
        memory=args.memory,
        seed=args.seed if args.seed is not None else (0 if args.deep else None),
        graph=args.graph is not None,
        threads=args.threads,
        **chosen,
    )


def _execute(request: ProbeRequest, args: argparse.Namespace) -> Outcome:
    streams = (
        Streams(sys.stdout.fileno(), sys.stderr.fileno())
        if args.form == "text" and _has_descriptors()
        else Streams()
    )
    line = TerminalLine(sys.stderr)
    cancel = threading.Event()

    def show(progress: Progress) -> None:
        line.show(told(progress))

    try:
        if args.nproc:
            return ranks.run(request, args.nproc, streams, show, cancel)
        if args.deep:
            return deep.run(request, streams, show, cancel)
        return host.run(request, streams, show, cancel)
    finally:
        line.clear()


def _has_descriptors() -> bool:
    try:
        sys.stdout.fileno()
        sys.stderr.fileno()
    except (OSError, ValueError):
        return False
    sys.stdout.flush()
    return True


def told(progress: Progress) -> str:
    """How far a probe is, in words."""
    faults = f", {progress.faults} fault{'s' if progress.faults != 1 else ''}" if progress.faults else ""
    return f"probing: {progress.backwards} backward, {progress.steps} steps, {progress.seconds:.1f} s{faults}"


def _draw(outcome: Outcome, document: dict[str, Any], texts: dict[str, str], target: Path) -> str:
    graph = outcome.report.get("graph") if isinstance(outcome, (Observed, Raised)) else None
    drawable = [fault for fault in document["faults"] if rule_of(fault["code"]).is_drawable]
    if graph is None or not drawable:
        return "no graph was drawn: no fault was found in one" if not isinstance(outcome, CouldNotRun) else ""
    from gradsight.cli.documents import Documents
    from gradsight.cli.graph_picture import dot_of, svg_of
    from gradsight.session.graph_folding import folded
    from gradsight.session.graphs import draw
    from gradsight.session.verdicts import fault_finding

    fault = drawable[0]
    operator = str(fault["evidence"].get("operator", ""))
    drawing = folded(draw(graph, fault_finding(fault), operator, Documents(given=texts).line))
    try:
        target.write_text(dot_of(drawing) if target.suffix == ".dot" else svg_of(drawing), "utf-8")
    except OSError as error:
        return f"the graph could not be written: {error}"
    return ""


def _print(document: dict[str, Any], texts: dict[str, str], form: str) -> None:
    if form == "json":
        json.dump(document, sys.stdout, indent=2, allow_nan=False, default=str)
        sys.stdout.write("\n")
        return
    if form == "sarif":
        json.dump(sarif_of(document), sys.stdout, indent=2, allow_nan=False, default=str)
        sys.stdout.write("\n")
        return
    from gradsight.cli.documents import Documents
    from gradsight.cli.run_text import write

    write(document, Documents(given=texts), sys.stdout)
