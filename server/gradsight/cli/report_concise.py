"""`--output-format concise`: one line for each finding, then one that sums up."""

from __future__ import annotations

from typing import TextIO

from gradsight.cli.documents import Documents
from gradsight.cli.merge_results import MergedResults
from gradsight.cli.report_text import fixable_findings, put, summary
from gradsight.session.finding_text import headline


def write(gathered: MergedResults, documents: Documents, out: TextIO, color: str) -> None:
    """The findings in reading order."""
    fixable = fixable_findings(gathered, documents)
    lines = [headline(finding, documents, finding in fixable.safe) for finding in gathered.findings]
    put([*lines, *summary(gathered, fixable)], out, color)
