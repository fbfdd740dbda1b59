"""`python -m gradsight_dev.facts`: writes the table and the report; `--check` says whether they are fresh."""

from __future__ import annotations

import difflib
import sys
import time
from pathlib import Path

from gradsight.ops.refresh import measure, text_of
from gradsight.ops.table import SHIPPED
from gradsight_dev.facts.crosscheck import cross_checked
from gradsight_dev.facts.report import report_text

REPORT = Path(__file__).parents[3] / "docs" / "facts-report.md"
COMMAND = "python -m gradsight_dev.facts"


def main(arguments: list[str]) -> int:
    """Write both files, or compare them with fresh ones."""
    started = time.monotonic()
    measured = measure(sys.executable, timeout=3600, progress=_show if sys.stderr.isatty() else None)
    fresh = {Path(SHIPPED): text_of(measured), REPORT: report_text(measured, cross_checked(measured))}
    if "--check" in arguments:
        stale = [path for path, text in fresh.items() if _difference(path, text)]
        for path in stale:
            print(f"{path.name} is stale; write it anew with: {COMMAND}")
        return 1 if stale else 0
    for path, text in fresh.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(
        f"{len(measured['facts'])} facts of torch {measured['torch']} in {time.monotonic() - started:.0f} s"
    )
    return 0


def _difference(path: Path, text: str) -> bool:
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    if old == text:
        return False
    for line in list(
        difflib.unified_diff(old.splitlines(), text.splitlines(), "committed", "fresh", n=0, lineterm="")
    )[:20]:
        print(line[:300])
    return True


def _show(done: int, total: int) -> None:
    print(f"\r{done} of {total}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
