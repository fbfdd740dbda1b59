"""What was not understood, where an editor shows it: in the hover of the line, and in the log."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from gradsight.model.report import Gap, Report
from gradsight.model.showing import as_markdown, visible

log = logging.getLogger(__name__)
MOST_SHOWN = 3
WORDS = {
    "budget": "not followed to the end",
    "import": "not found in the workspace",
    "unknown": "not known to GradSight",
    "syntax": "not parsed",
    "internal": "lost by a fault of GradSight",
    "detector": "not analysed, by a fault of GradSight",
}


def gap_card(gaps: Sequence[Gap], line: int) -> str:
    """What is not known about a line, in Markdown; empty where nothing is missing."""
    here = sorted(
        (gap for gap in gaps if gap.line == line and not gap.path), key=lambda gap: (-gap.count, gap.reason)
    )
    told = [f"{WORDS[gap.kind]}: {as_markdown(gap.reason)}" for gap in here[:MOST_SHOWN]]
    if len(here) > MOST_SHOWN:
        told.append(f"and {len(here) - MOST_SHOWN} more")
    return f"*{'; '.join(told)}*" if told else ""


def not_analysed(report: Report | None) -> str:
    """How much of a file was not analysed, for a status: `2 of 31 functions not analysed`; empty where all was."""
    coverage = report.coverage if report is not None else None
    if coverage is None or not coverage.not_analysed:
        return ""
    return f"{coverage.not_analysed} of {coverage.functions} functions not analysed"


def log_gaps(report: Report) -> None:
    """How much of a file was not understood; a fault of ours is logged as one."""
    missing = not_analysed(report)
    if missing:
        log.info("%s: %s", visible(report.path), missing)
    for gap in report.gaps:
        level = logging.ERROR if gap.kind in ("internal", "detector") else logging.INFO
        log.log(
            level,
            "%s:%d: %s (%s, %d)",
            visible(gap.path or report.path),
            gap.line,
            visible(gap.reason),
            gap.kind,
            gap.count,
        )
