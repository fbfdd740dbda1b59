"""`--output-format grouped`: the findings of each file under its name."""

from __future__ import annotations

from itertools import groupby
from typing import TextIO

from gradsight.cli.documents import Documents
from gradsight.cli.merge_results import MergedResults
from gradsight.cli.report_text import fixable_findings, put, summary
from gradsight.session.finding_text import Run, link_style
from gradsight.session.shown_paths import shown_path


def write(gathered: MergedResults, documents: Documents, out: TextIO, color: str) -> None:
    """A block for each file, then one line that sums up."""
    fixable = fixable_findings(gathered, documents)
    lines: list[list[Run]] = []
    for path, findings in groupby(gathered.findings, key=lambda finding: finding.path):
        lines.append([(f"{shown_path(path)}:", link_style(path))])
        for finding in findings:
            position = documents.position(path, finding.span)
            cell = f"cell {position.cell}:" if position.cell is not None else ""
            mark = "[*] " if finding in fixable.safe else ""
            lines.append([
                (f"  {cell}{position.span.line}:{position.span.column + 1} ", "gutter"),
                (finding.severity, finding.severity),
                (f" {finding.code} ", "path"),
                (f"{mark}{finding.message}", ""),
            ])  # fmt: skip
        lines.append([])
    put([*lines, *summary(gathered, fixable)], out, color)
