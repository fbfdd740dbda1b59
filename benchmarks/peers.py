"""GradSight beside other checkers, on the labelled programs: what each finds, how often it is wrong, and how long it takes.

    python benchmarks/peers.py [--tools FOLDER] [FOLDER ...]

A folder has `labels.json` and `programs/` (or the programs beside it), and may have right twins in `references/`; without one
the fixtures are taken.  `--tools` is the `bin` of an environment with TorchFix, torch-preflight, torch-audit, ruff and ty; what is not
there is left out, and said.  *Found*: a finding stands on a line of the label; *false*: a safe program or a twin gets any
finding.  torch-audit is handed the models of each program, which runs, and names no line: any warning counts.  Anomaly mode
runs each program: a line counts when its traceback shows it anywhere.  ty reads the torch of the interpreter that runs this.  Times are
processor seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import re
import resource
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
_PLACE = re.compile(r"^(?P<path>[^\s:][^:\n]*\.py):(?P<line>\d+)", re.MULTILINE)
OF_SPEED = ("TA200", "TA201", "TA202", "TA203")
"""torch-audit's remarks on the sizes and types of layers."""
Lines = dict[str, set[int]]


@dataclass
class Score:
    """What one tool did."""

    raising: int = 0
    silent: int = 0
    false: int = 0
    seconds: float = 0.0


@dataclass
class Programs:
    """Labelled programs, and right twins of some."""

    labels: list[tuple[Path, dict[str, Any]]] = field(default_factory=list)
    twins: list[Path] = field(default_factory=list)

    def paths(self) -> list[Path]:
        return [*(path for path, _ in self.labels), *self.twins]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", type=Path, default=Path(sys.executable).parent)
    parser.add_argument("folders", nargs="*", type=Path)
    options = parser.parse_args()
    programs = gathered(options.folders or sorted(each.parent for each in FIXTURES.rglob("labels.json")))
    tools = options.tools
    rows: dict[str, Callable[[list[Path]], Lines] | None] = {
        "GradSight check": gradsight,
        "torch-preflight": preflight(tools / "torch-preflight"),
        "TorchFix": plain(tools / "torchfix", "--select", "ALL"),
        "ruff": plain(tools / "ruff", "check", "--isolated", "--output-format", "concise"),
        "ty": plain(tools / "ty", "check", "--output-format", "concise", "--python", sys.prefix),
        "torch-audit": audit(tools),
        "anomaly mode": anomaly,
    }
    verdicts = [label["verdict"] for _, label in programs.labels]
    raising, silent = verdicts.count("raises"), verdicts.count("silent-wrong")
    safe = verdicts.count("safe") + len(programs.twins)
    print("| tool | raising, found | silent, found | right programs with a finding | seconds |")
    print("| --- | --- | --- | --- | --- |")
    for name, tool in rows.items():
        if tool is None:
            print(f"| {name} | not installed | | | |")
            continue
        score = rated(programs, tool)
        print(
            f"| {name} | {score.raising} of {raising} | {score.silent} of {silent} | {score.false} of {safe} "
            f"| {score.seconds:.1f} |"
        )
    return 0


def gathered(folders: list[Path]) -> Programs:
    """The programs of some folders."""
    found = Programs()
    for folder in folders:
        for label in json.loads((folder / "labels.json").read_text("utf-8")):
            inner = folder / "programs" / label["file"]
            found.labels.append(((inner if inner.exists() else folder / label["file"]).resolve(), label))
            twin = folder / "references" / label["file"]
            if twin.exists() and label["verdict"] != "safe":
                found.twins.append(twin.resolve())
    return found


def rated(programs: Programs, tool: Callable[[list[Path]], Lines]) -> Score:
    """Runs one tool over everything."""
    score = Score()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = tool(programs.paths())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    score.seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    for path, label in programs.labels:
        lines = said.get(str(path), set())
        is_found = bool(lines & set(label["hazard_lines"]))
        if label["verdict"] == "raises":
            score.raising += is_found
        elif label["verdict"] == "silent-wrong":
            score.silent += is_found
        else:
            score.false += bool(lines)
    score.false += sum(bool(said.get(str(twin))) for twin in programs.twins)
    return score


def gradsight(paths: list[Path]) -> Lines:
    command = [sys.executable, "-m", "gradsight", "check", "--no-cache", "--format", "json", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: Lines = {}
    for each in json.loads(done.stdout):
        if each["severity"] in ("error", "warning"):
            found.setdefault(str(Path(each["filename"]).resolve()), set()).add(each["location"]["row"])
    return found


def plain(command: Path, *arguments: str) -> Callable[[list[Path]], Lines] | None:
    """A tool that prints `file:line: text`."""
    if not command.exists():
        return None

    def run(paths: list[Path]) -> Lines:
        done = subprocess.run(
            [str(command), *arguments, *map(str, paths)], capture_output=True, text=True, check=False
        )
        found: Lines = {}
        for match in _PLACE.finditer(done.stdout):
            found.setdefault(str(Path(match.group("path")).resolve()), set()).add(int(match.group("line")))
        return found

    return run


def preflight(command: Path) -> Callable[[list[Path]], Lines] | None:
    """torch-preflight writes annotations for GitHub."""
    if not command.exists():
        return None

    def run(paths: list[Path]) -> Lines:
        done = subprocess.run(
            [str(command), "check", "--format", "github", *map(str, paths)],
            capture_output=True,
            text=True,
            check=False,
        )
        found: Lines = {}
        for match in re.finditer(r"^::(?:error|warning) file=([^,]+),line=(\d+)", done.stdout, re.MULTILINE):
            found.setdefault(str(Path(match.group(1)).resolve()), set()).add(int(match.group(2)))
        return found

    return run


def in_children(paths: list[Path], look: Callable[[Path], set[int]]) -> Lines:
    """Runs every program in a child of this process; `look` tells the lines that a tool speaks of."""
    import torch
    import torch._dynamo  # optimizers import it: not in every child

    torch.set_num_threads(1)
    found: Lines = {}
    for path in paths:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            try:
                os.write(writer, json.dumps(sorted(look(path))).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            data = pipe.read()
        os.waitpid(pid, 0)
        found[str(path)] = set(json.loads(data or b"[]"))
    return found


def anomaly(paths: list[Path]) -> Lines:
    """torch's anomaly mode."""
    return in_children(paths, lines_under_anomaly)


def audit(tools: Path) -> Callable[[list[Path]], Lines] | None:
    """torch-audit, on every model that an optimizer of the program moves and on every other model that is left at its end.

    It names layers, not lines: whatever it says of a program, from a warning on, counts for every line of it.
    """
    packages = next(tools.parent.glob("lib/python*/site-packages/torch_audit"), None)
    if packages is None:
        return None
    sys.path.append(str(packages.parent))

    def run(paths: list[Path]) -> Lines:
        return in_children(paths, lines_under_audit)

    return run


def lines_under_audit(path: Path) -> set[int]:
    """All lines of a program if torch-audit warns of it, beyond the speed of layers."""
    import gc

    import torch

    torch_audit = importlib.import_module("torch_audit")
    auditors: list[Any] = []
    make = torch.optim.Optimizer.__init__

    def made(optimizer: Any, *args: Any, **kwargs: Any) -> None:
        make(optimizer, *args, **kwargs)
        moved = {id(each) for group in optimizer.param_groups for each in group["params"]}
        models = [each for each in gc.get_objects() if isinstance(each, torch.nn.Module)]
        inner = {id(part) for model in models for part in model.modules() if part is not model}
        for model in models:
            if id(model) not in inner and any(id(each) in moved for each in model.parameters()):
                with contextlib.suppress(Exception):
                    auditors.append(torch_audit.autopatch(model, optimizer=optimizer, every_n_steps=1))

    torch.optim.Optimizer.__init__ = made
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    sys.stdout = sys.stderr = io.StringIO()
    text = path.read_text("utf-8")
    sys.path.insert(0, str(path.parent))
    with contextlib.suppress(Exception, SystemExit):
        exec(compile(text, str(path), "exec"), names)
    findings = []
    for auditor in auditors:
        with contextlib.suppress(Exception):
            findings += auditor.finish().findings
    if not auditors:
        for model in [each for each in names.values() if isinstance(each, torch.nn.Module)]:
            with contextlib.suppress(Exception):
                findings += torch_audit.audit(model).findings
    warned = [each for each in findings if each.severity.value != "INFO" and each.rule_id not in OF_SPEED]
    return set(range(1, text.count("\n") + 2)) if warned else set()


def lines_under_anomaly(path: Path) -> set[int]:
    """The lines of a program that its error and the forward traceback of anomaly mode show."""
    import warnings

    import torch

    said = io.StringIO()
    sys.stdout = sys.stderr = said
    # Anomaly mode tells where the forward was in a warning.
    warnings.showwarning = lambda message, *unused: print(message, file=said)
    sys.path.insert(0, str(path.parent))
    try:
        with torch.autograd.set_detect_anomaly(True):
            exec(
                compile(path.read_text("utf-8"), str(path), "exec"),
                {"__name__": "__main__", "__file__": str(path)},
            )
    except Exception:
        traceback.print_exc(file=said)
    pattern = re.compile(rf'File "{re.escape(str(path))}", line (\d+)')
    return {int(number) for number in pattern.findall(said.getvalue())}


if __name__ == "__main__":
    sys.exit(main())
