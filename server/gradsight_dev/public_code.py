"""Writes docs/public-code.md: what GradSight says about packages and repositories that nobody here wrote.

The table comes from benchmarks/public_code.json: one line per package with its version, its lines of Python, how many
errors and warnings it gets, and how many of these were read and found right or wrong.  `read` lists each alarm with its
place, its verdict and the reason; `last` stands in the rows of packages that were checked last, with what was told and wrong
`before` anything was corrected.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DATA = ROOT / "benchmarks" / "public_code.json"
PAGE = ROOT / "docs" / "public-code.md"
MARK = "<!-- Written by: .venv/bin/python -m gradsight_dev.public_code -->"
TEXT = """MARK
# Public code

What GradSight reports about code that nobody here wrote: COUNT packages and repositories, LINES lines of Python, checked by
`gradsight check` as they are published. An alarm is an error or a warning. *Right*: the line was read or run, and it does what
the message says; where the message states an assumption, the line fails whenever the assumption holds. *Wrong*: the line
does not do that, or the assumption never holds there. *Open*: nobody has read it yet.

ALARMS alarms: RIGHT right, WRONG wrong, OPEN open. Wrong and open ones together: one in SHARE lines.
{recent} of the packages, with {size} of these lines, had never been checked before. As they were first met they had {first} alarms, of
which {mistaken} were wrong: that is what to expect of unknown code. The table shows what is left after the mechanisms behind
some of these were corrected; files whose wrong alarms went away were checked again, the others were not. {faults} are still wrong.
The rows of the other packages are older, and were corrected in the same way.

| package | version | lines | alarms | right | wrong | open |
| --- | --- | --- | --- | --- | --- | --- |
ROWS

## Alarms, one by one

Each alarm of the packages whose alarms are listed, the verdict, and the reason.

| place | rule | verdict | why |
| --- | --- | --- | --- |
READ
"""


def main() -> int:
    """Write the page, or with --check say whether it is stale."""
    parser = argparse.ArgumentParser(prog="python -m gradsight_dev.public_code", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    is_check = parser.parse_args().check
    text = page(json.loads(DATA.read_text()))
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    if is_check:
        print(f"stale: {PAGE.name}")
        return 1
    PAGE.write_text(text)
    return 0


def page(packages: list[dict[str, Any]]) -> str:
    """The page as it should be."""
    rows, read = [], []
    total = {"lines": 0, "alarms": 0, "right": 0, "wrong": 0}
    for package in packages:
        for key in total:
            total[key] += package[key]
        opened = package["alarms"] - package["right"] - package["wrong"]
        told = [package["alarms"], package["right"], package["wrong"], opened]
        shown = " | ".join(str(number) if number else "" for number in told)
        read += [
            f"| {package['name']}: {alarm['place']} | {alarm['code']} | {alarm['verdict']} | {alarm['why']} |"
            for alarm in package.get("read", ())
        ]
        rows.append(f"| {package['name']} | {package['version']} | {package['lines']:,} | {shown} |")
    opened = total["alarms"] - total["right"] - total["wrong"]
    fresh = [package for package in packages if package.get("last")]
    words = {
        "MARK": MARK,
        "COUNT": str(len(packages)),
        "LINES": f"{total['lines']:,}",
        "ALARMS": str(total["alarms"]),
        "RIGHT": str(total["right"]),
        "WRONG": str(total["wrong"]),
        "OPEN": str(opened),
        "SHARE": f"{total['lines'] // max(1, total['wrong'] + opened):,}",
        "{size}": f"{sum(package['lines'] for package in fresh):,}",
        "{faults}": str(sum(package["wrong"] for package in fresh)),
        "{recent}": str(len(fresh)),
        "{first}": str(sum(package["before"]["alarms"] for package in fresh)),
        "{mistaken}": str(sum(package["before"]["wrong"] for package in fresh)),
        "ROWS": "\n".join(rows),
        "READ": "\n".join(read),
    }
    text = TEXT
    for word, value in words.items():
        text = text.replace(word, value)
    return text


if __name__ == "__main__":
    raise SystemExit(main())
