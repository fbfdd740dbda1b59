"""How long a probe takes from the command to the published verdict: a fresh interpreter against the warm one.

    python benchmarks/probe_start.py [--repeats N]

A server is asked to probe a program of thirty lines that trains a small network for three steps: the first time it has to
start an interpreter and import torch, the second time one is waiting.  The promise: warm is at most a fifth of cold.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.lsp.editor import FULL, Editor  # noqa: E402

PROGRAM = Path(__file__).resolve().parent / "workloads" / "thirty_lines.py"
OPTIONS = {"debounce": 0, "interpreter": sys.executable}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    pairs = [measured() for _ in range(parser.parse_args().repeats)]
    cold, warm = (statistics.median(times) for times in zip(*pairs))
    ratio = statistics.median(second / first for first, second in pairs)
    print(f"cold {cold:.2f} s, warm {warm * 1000:.0f} ms, ratio {ratio:.3f}")
    return 0 if ratio <= 0.2 else 1


def measured() -> tuple[float, float]:
    """Seconds of the first and of the second probe of a new server."""
    text = PROGRAM.read_text("utf-8").replace("torch.relu(self.hidden(x))", "self.scaled(x)")
    # A write after a save, so that there is a verdict to publish.
    text = text.replace(
        "    def forward",
        "    def scaled(self, x):\n        h = torch.sigmoid(self.hidden(x))\n        h *= 2\n        return h\n\n    def forward",
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        Editor(FULL, OPTIONS, [Path(folder)], lambda scope: OPTIONS) as editor,
    ):
        uri = editor.open((Path(folder) / "thirty_lines.py").as_uri(), text)
        editor.diagnostics(uri)
        return timed(editor, uri), timed(editor, uri)


def timed(editor: Editor, uri: str) -> float:
    """Seconds from the command until the verdict is published."""
    published = len(editor.published[uri])
    begun = time.perf_counter()
    asked = editor.ask("workspace/executeCommand", {"command": "gradsight.probeFile", "arguments": [uri]})

    def is_told() -> bool:
        fresh = editor.published[uri][published:]
        return any("confirmed" in each["message"] for told in fresh for each in told["diagnostics"])

    editor.wait(is_told)
    spent = time.perf_counter() - begun
    editor.answer(asked)
    return spent


if __name__ == "__main__":
    sys.exit(main())
