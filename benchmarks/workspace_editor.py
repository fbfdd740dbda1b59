"""From an edit to fresh diagnostics in a file of a large workspace: GradSight beside ruff and ty, as ratios measured in one run.

    python benchmarks/workspace_editor.py [--wheels FOLDER] [--tools FOLDER] [--file PATH] [--rounds N] [SERVER ...]

The tree is made from the pinned wheel of transformers as in `workspace_speed.py`; `--tools` is the `bin` of an environment that
has `ruff` and `ty`.  The servers take turns, round by round.  Besides wall time the processor time of the server is given for
each kind of edit: a machine with other work on it changes the first and hardly the second.
*First*: from the start of the process to the first diagnostics.  *Burst*: ten edits sent at once, until the last is answered.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from lsp_latency import Server, percentile, servers, start_of, wait_for_version  # noqa: E402
from workspace_speed import compile_package, unpacked  # noqa: E402

from tests.lsp.editor import FULL, Editor  # noqa: E402

OPENED = "transformers/models/t5/modeling_t5.py"
INDENT = " " * 8
TYPED = f"{INDENT}spare = max(1, {{}})"
BURST = 10
Edit = tuple[int, int, str]
"""Counted from the start of a line: where it begins, how many characters go, and what comes."""


class Measured:
    """One server with the file open, and its figures in milliseconds by kind of edit."""

    def __init__(self, server: Server, tree: Path, file: str) -> None:
        self.server = server
        text = (tree / file).read_text(encoding="utf-8")
        self.line = typing_place(text)
        began = time.perf_counter()
        self.editor = Editor(
            capabilities=FULL,
            options=server.settings,
            folders=[tree],
            command=server.command,
            configuration=lambda scope: server.settings,
        )
        self.uri = self.editor.open((tree / file).as_uri(), text)
        self.editor.diagnostics(self.uri)
        self.first = (self.editor.arrived_at - began) * 1000
        self.wall: dict[str, list[float]] = {}
        self.busy: dict[str, list[float]] = {}

    def play(self, number: int) -> None:
        """Play the edits once, in a text that no server has seen before; the first time is not counted."""
        is_counted = number > 0
        end = len(self.editor.texts[self.uri])
        known = len(self.editor.published[self.uri])
        version = self.editor.change(self.uri, (end, end, f"# {number}\n"))
        wait_for_version(self.editor, self.uri, version, known)
        for kind, edits in script(number):
            before = processor_time(self.editor.process.pid)
            known = len(self.editor.published[self.uri])
            began = time.perf_counter()
            version = self.send(edits)
            wait_for_version(self.editor, self.uri, version, known)
            if is_counted:
                self.wall.setdefault(kind, []).append((self.editor.arrived_at - began) * 1000)
            time.sleep(0.05)
            if is_counted:
                spent = processor_time(self.editor.process.pid) - before
                self.busy.setdefault(kind, []).append(spent * 1000)

    def send(self, edits: list[Edit]) -> int:
        """Send the edits, one message each, without waiting in between."""
        version = 0
        for offset, gone, new in edits:
            start = start_of(self.editor.texts[self.uri], self.line) + offset
            version = self.editor.change(self.uri, (start, start + gone, new))
        return version

    def row(self) -> dict[str, float]:
        """The figures of the table."""
        single = [one for kind, times in self.wall.items() if kind != "burst" for one in times]
        busy = [one for kind, times in self.busy.items() if kind != "burst" for one in times]
        return {
            "first": self.first,
            "p50": percentile(single, 50),
            "p95": percentile(single, 95),
            "burst": percentile(self.wall["burst"], 50),
            "busy p50": percentile(busy, 50),
            "busy p95": percentile(busy, 95),
            "MB": peak(self.editor.process.pid),
        }


def script(number: int) -> Iterator[tuple[str, list[Edit]]]:
    """A statement typed letter by letter, lines put in and taken out, text broken and repaired, ten keys at once, all undone.
    What is typed is another statement each time, by its number.
    """
    typed = TYPED.format(number)
    yield "line", [(0, 0, "\n")]
    for index, letter in enumerate(typed):
        yield "typed", [(index, 0, letter)]
    for more in (f"{INDENT}more = {number}\n", f"{INDENT}more = torch.zeros({number})\n"):
        yield "line", [(0, 0, more)]
        yield "line", [(0, len(more), "")]
    name = len(f"{INDENT}spare")
    yield "broken", [(name, 0, " (")]
    yield "repaired", [(name, 2, "")]
    yield "broken", [(len(typed) - 1, 1, "")]
    yield "repaired", [(len(typed) - 1, 0, f"+ {number})")]
    typed = f"{typed[:-1]}+ {number})"
    yield "burst", [(name + place, 0, "d") for place in range(BURST)]
    yield "burst", [(name, 1, "")] * BURST
    for index in reversed(range(len(typed))):
        yield "typed", [(index, 1, "")]
    yield "line", [(0, 1, "")]


def typing_place(content: str) -> int:
    """A line in the middle of the text that ends a method."""
    lines = content.split("\n")
    for number in range(len(lines) * 2 // 3, len(lines) - 1):
        if lines[number].startswith(f"{INDENT}return ") and not lines[number + 1].strip():
            return number
    raise SystemExit("no place to type was found")


def main() -> int:
    """Print a table of all servers, and the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("servers", nargs="*", help="only these (gradsight ruff ty)")
    parser.add_argument("--wheels", type=Path)
    parser.add_argument("--tools", type=Path, default=Path(sys.executable).parent)
    parser.add_argument("--file", default=OPENED, help=f"the file that is edited ({OPENED})")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write all figures here")
    args = parser.parse_args()
    wanted = args.servers or ["gradsight", "ruff", "ty"]
    compile_package()
    with tempfile.TemporaryDirectory() as home:
        tree = unpacked("transformers", Path(home), args.wheels)
        # One server begins at a time: the first diagnostics of each are its own.
        found = [server for server in servers(args.tools.parent) if server.name in wanted]
        running = [Measured(server, tree, args.file) for server in found]
        for number in range(args.rounds + 1):
            for each in running:
                each.play(number)
        rows = {each.server.name: each.row() for each in running}
        write_table(args.file, rows)
        for each in running:
            kinds = ", ".join(
                f"{kind} {percentile(times, 50):.0f}/{percentile(times, 95):.0f} ({percentile(each.busy[kind], 50):.0f})"
                for kind, times in each.wall.items()
            )
            print(f"  {each.server.name}: p50/p95 (processor p50) {kinds}")
            each.editor.process.kill()
        if args.json:
            args.json.write_text(json.dumps(rows))
    return 0


def write_table(file: str, rows: dict[str, dict[str, float]]) -> None:
    """All figures, then ours over theirs."""
    print(f"{file}: milliseconds, and megabytes at the peak")
    titles = list(next(iter(rows.values())))
    print(" " * 14 + "".join(f"{title:>10}" for title in titles))
    for name, row in rows.items():
        print(f"  {name:12}" + "".join(f"{row[title]:10.0f}" for title in titles))
    ours = rows.get("gradsight")
    for name, row in rows.items():
        if ours is not None and row is not ours:
            ratios = (ours[title] / max(row[title], 0.01) for title in titles)
            print(f"  ours / {name:5}" + "".join(f"{ratio:10.2f}" for ratio in ratios))


def processor_time(pid: int) -> float:
    """Processor seconds of all threads of a process."""
    tasks = Path(f"/proc/{pid}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9


def peak(pid: int) -> float:
    """The most memory that a process has held, in megabytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


if __name__ == "__main__":
    raise SystemExit(main())
