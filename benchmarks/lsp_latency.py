"""From a keystroke to fresh diagnostics: GradSight and other language servers, one client, one edit script, one run.

Run: python benchmarks/lsp_latency.py [--install] [--peers FOLDER] [--rounds N] [SERVER ...]
`--install` puts the other servers into an environment of their own (build/peers by default); those that are not there
are left out and named.  The large texts are read from the installed torch.  Servers take turns, text by text, so that the
load of the machine is shared; only figures of one run should be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.lsp.editor import FULL, Editor  # noqa: E402

PACKAGES = ("ruff", "ty", "basedpyright", "jedi-language-server", "python-lsp-server", "torchtyc")
BARE = """
from pygls.lsp.server import LanguageServer
from lsprotocol import types as t
s = LanguageServer('echo', '1')
@s.feature('textDocument/didChange')
def change(ls, p):
    u = p.text_document.uri
    PARSE
    ls.text_document_publish_diagnostics(t.PublishDiagnosticsParams(u, [], p.text_document.version))
@s.feature('textDocument/didOpen')
def opened(ls, p): ls.text_document_publish_diagnostics(t.PublishDiagnosticsParams(p.text_document.uri, [], 1))
s.start_io()
"""
PARSE = "import ast; doc = ls.workspace.get_text_document(u)\n    try: ast.parse(doc.source)\n    except SyntaxError: pass"


@dataclass(frozen=True)
class Text:
    """A text, and the place where it is typed into: a line inside a function."""

    name: str
    content: str
    line: int


@dataclass(frozen=True)
class Server:
    """A server and how it is started."""

    name: str
    command: list[str]
    settings: object = None


def main() -> int:
    """Print a table, milliseconds at the median and at the 95th percentile, for each text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("servers", nargs="*", help="only these")
    parser.add_argument("--peers", type=Path, default=ROOT / "build" / "peers")
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--rounds", type=int, default=4, help="times the edit script is played")
    parser.add_argument("--json", type=Path, help="write all figures here")
    args = parser.parse_args()
    if args.install:
        install(args.peers)
    chosen = [server for server in servers(args.peers) if not args.servers or server.name in args.servers]
    figures: dict[str, dict[str, list[float]]] = {}
    for text in texts():
        print(f"\n{text.name}, {text.content.count(chr(10))} lines")
        for server in chosen:
            try:
                times = measure(server, text, args.rounds)
            except (AssertionError, OSError) as problem:
                print(f"  {server.name:22} did not answer: {str(problem)[:100]}")
                continue
            figures.setdefault(text.name, {})[server.name] = times
            print(
                f"  {server.name:22} p50 {percentile(times, 50):8.1f} ms   p95 {percentile(times, 95):8.1f} ms",
                flush=True,
            )
    if args.json:
        args.json.write_text(json.dumps(figures))
    return 0


def install(folder: Path) -> None:
    """Make an environment with the other servers."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    for package in PACKAGES:
        outcome = subprocess.run([folder / "bin" / "pip", "install", "-q", package], check=False)
        if outcome.returncode:
            print(f"{package} cannot be installed here")


def servers(folder: Path) -> list[Server]:
    """Everything that can be started."""
    python, ours = sys.executable, {"debounce": 0}
    found = [
        Server("gradsight", [python, "-m", "gradsight.lsp"], ours),
        Server("bare pygls", [python, "-c", BARE.replace("PARSE", "pass")]),
        Server("pygls + ast.parse", [python, "-c", BARE.replace("PARSE", PARSE)]),
    ]
    peers = {
        "ruff": ["ruff", "server"],
        "ty": ["ty", "server"],
        "basedpyright": ["basedpyright-langserver", "--stdio"],
        "torchtyc": ["torchtyc", "lsp"],
        "jedi": ["jedi-language-server"],
        "pylsp": ["pylsp"],
    }
    for name, (program, *rest) in peers.items():
        path = next(
            (
                each
                for each in (folder / "bin" / program, Path(sys.executable).parent / program)
                if each.exists()
            ),
            None,
        )
        if path is None:
            print(f"{name} is not installed (--install)", file=sys.stderr)
        else:
            found.append(Server(name, [str(path), *rest]))
    return found


def texts() -> list[Text]:
    """A training script of our own and two files of the installed torch."""
    found = [Text("training script", (ROOT / "benchmarks" / "texts" / "train_classifier.py").read_text(), 0)]
    spec = find_spec("torch")
    if spec is not None and spec.origin is not None:
        folder = Path(spec.origin).parent / "nn"
        found.append(Text("model file", (folder / "modules" / "transformer.py").read_text(), 0))
        found.append(Text("large file", (folder / "functional.py").read_text(), 0))
    return [Text(text.name, text.content, typing_place(text.content)) for text in found]


def typing_place(content: str) -> int:
    """A line in the middle of the text that is a plain statement inside a function."""
    lines = content.split("\n")
    middle = len(lines) * 2 // 3
    for number in range(middle, len(lines) - 1):
        if lines[number].startswith("    return ") and lines[number].rstrip().endswith(
            ("x", ")", "loss", "out")
        ):
            return number
    raise SystemExit("no place to type was found")


def measure(server: Server, text: Text, rounds: int) -> list[float]:
    """Milliseconds from each edit to diagnostics about it."""
    with Editor(
        capabilities=FULL,
        options=server.settings,
        command=server.command,
        configuration=lambda scope: server.settings,
    ) as editor:
        uri = (ROOT / "build" / f"typed_{os.getpid()}.py").as_uri()
        editor.open(uri, text.content)
        editor.diagnostics(uri)
        times = []
        for number in range(rounds + 1):
            for edit in script(editor.texts[uri], text.line):
                known = len(editor.published[uri])
                version = editor.change(uri, *edit(editor.texts[uri]))
                wait_for_version(editor, uri, version, known)
                if number:
                    times.append((editor.arrived_at - editor.sent_at) * 1000)
                time.sleep(0.005)
        return times


def wait_for_version(editor: Editor, uri: str, version: int, known: int) -> None:
    """Wait for diagnostics about a version; of a server that tells none, for the next ones."""
    published = editor.published[uri]
    editor.wait(lambda: len(published) > known and published[-1].get("version", version) >= version)


def script(content: str, line: int) -> list:
    """Edits one after the other: a statement typed letter by letter and deleted again, lines put in and taken out, syntax
    broken and repaired.  Some of them do nothing yet, some change what the function does.
    """

    def at(offset: int, old: int, new: str):
        def edit(text: str) -> list[tuple[int, int, str]]:
            start = start_of(text, line) + offset
            return [(start, start + old, new)]

        return edit

    typed = "    spare = max(1, 2)\n"
    edits = [at(0, 0, "\n")]
    edits += [at(index, 0, letter) for index, letter in enumerate(typed[:-1])]
    edits += [at(0, 0, "    more = 2\n"), at(0, len("    more = 2\n"), "")]
    edits += [at(len("    spare"), 0, " ("), at(len("    spare"), 2, "")]
    edits += [at(index, 1, "") for index in reversed(range(len(typed) - 1))]
    edits += [at(0, 1, "")]
    return edits


def start_of(text: str, line: int) -> int:
    """The offset at which a line begins."""
    place = 0
    for _ in range(line):
        place = text.index("\n", place) + 1
    return place


def percentile(values: list[float], share: int) -> float:
    """The value below which this share of the values lies."""
    if share == 50:
        return statistics.median(values)
    return sorted(values)[min(len(values) - 1, len(values) * share // 100)]


if __name__ == "__main__":
    raise SystemExit(main())
