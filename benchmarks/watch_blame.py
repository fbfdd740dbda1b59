"""Who names the line inside the exception: `gradsight.watch()` on every labelled program, each in this process.

    python benchmarks/watch_blame.py [--also FOLDER] [--show]

For each program that raises: do the notes on the exception contain the line to change?  For each safe one: is there no
note, and does the watch leave nothing behind?
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import linecache
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import gradsight

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
ENOUGH = 0.97


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--also", type=Path, action="append", default=[], metavar="FOLDER")
    parser.add_argument("--show", action="store_true", help="print the notes")
    options = parser.parse_args()
    raising = named = safe = noisy = 0
    remarks = []
    for path, label in programs([FIXTURES, FIXTURES / "truths", *options.also]):
        error, notes = watched(path)
        if options.show and notes:
            print(f"{path.name}\n{notes}\n")
        if label["verdict"] == "raises":
            raising += 1
            hit = any(names(notes, path, line) for line in label["hazard_lines"])
            named += hit
            if not hit:
                remarks.append(f"missed: {path.name} {label['hazard_lines']}: {error!r:.90}: {notes[:160]}")
        elif label["verdict"] == "safe":
            safe += 1
            noisy += bool(notes)
            if notes:
                remarks.append(f"a note on a safe program: {path.name}: {notes[:160]}")
    print(*remarks, sep="\n")
    print(
        f"raising programs: the line to change is in the notes of {named} of {raising} ({named / raising:.1%})"
    )
    print(f"safe programs: notes on {noisy} of {safe}")
    return 0 if named >= ENOUGH * raising and not noisy else 1


def programs(folders: list[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Labelled programs."""
    for folder in folders:
        for label in json.loads((folder / "labels.json").read_text("utf-8")):
            inner = folder / "programs" / label["file"]
            yield (inner if inner.exists() else folder / label["file"]), label


def names(notes: str, path: Path, line: int) -> bool:
    """Whether the notes name this line: by a place that can be followed, or with its text and marks below it."""
    text = linecache.getline(str(path), line).strip()
    shown = re.compile(rf"^ +{line} \| +{re.escape(text)}$", re.MULTILINE) if text else None
    return bool(re.search(rf"{re.escape(path.name)}:{line}\b", notes) or (shown and shown.search(notes)))


def watched(path: Path) -> tuple[BaseException | None, str]:
    """Runs a program under a watch; its error and the notes on it."""
    module = ModuleType("__main__")
    module.__file__ = str(path)
    before, sys.modules["__main__"] = sys.modules["__main__"], module
    linecache.checkcache()
    torch.manual_seed(0)
    error: BaseException | None = None
    try:
        quiet = io.StringIO()
        with (
            contextlib.redirect_stdout(quiet),
            contextlib.redirect_stderr(quiet),
            gradsight.watch(report=False),
        ):
            exec(compile(path.read_text("utf-8"), str(path), "exec"), module.__dict__)
    except BaseException as raised:
        error = raised
    finally:
        sys.modules["__main__"] = before
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
    return error, "\n".join(getattr(error, "__notes__", ()))


if __name__ == "__main__":
    sys.exit(main())
