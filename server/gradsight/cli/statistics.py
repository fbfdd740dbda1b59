"""`--statistics`: how often each rule spoke, instead of where."""

from __future__ import annotations

import json
from collections import Counter
from typing import TextIO

from gradsight.cli.merge_results import MergedResults
from gradsight.rules import find


def write(gathered: MergedResults, out: TextIO, form: str) -> None:
    """A table, the most frequent rule first; an array of objects for the formats that machines read."""
    counts = Counter((finding.code, finding.name, finding.severity) for finding in gathered.findings)
    rows = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    if form not in ("full", "text", "concise", "grouped"):
        table = [
            {"code": code, "name": name, "severity": severity, "count": count}
            for (code, name, severity), count in rows
        ]
        json.dump(table, out, indent=2)
        out.write("\n")
        return
    width = max((len(name) for (_, name, _), _ in rows), default=0)
    for (code, name, severity), count in rows:
        rule = find(code)
        summary = rule.summary if rule is not None else ""
        out.write(f"{count:>5}  {severity:<7}  {code}  {name:<{width}}  {summary}".rstrip() + "\n")
    total = sum(counts.values())
    out.write(f"{total:>5}  in {gathered.checked} file{'' if gathered.checked == 1 else 's'} with torch\n")
