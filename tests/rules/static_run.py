"""Analyses an example and compares what GradSight says with what the page claims."""

from __future__ import annotations

from gradsight.analysis import analyze
from gradsight.model import Finding, Settings, Source
from tests.rules.pages import OURS, Block, Claim


def disagreements(block: Block) -> list[str]:
    """Claims that GradSight did not keep, and findings that no claim announced."""
    report = analyze(Source(block.path, block.bare_text()), Settings(hints=True))
    claims = block.claims(OURS)
    unkept = [claim for claim in claims if not any(keeps(finding, claim) for finding in report.findings)]
    unannounced = [
        finding
        for finding in report.findings
        if finding.severity != "hint" and not any(keeps(finding, claim) for claim in claims)
    ]
    return [
        *(f"does not parse: {problem.message}" for problem in report.syntax_problems),
        *(f"gradsight does not say {claim}" for claim in unkept),
        *(
            f"gradsight says line {finding.span.line}: {finding.severity}: {finding.code} {finding.message}"
            for finding in unannounced
        ),
    ]


def keeps(finding: Finding, claim: Claim) -> bool:
    """Whether a finding is what a claim announces."""
    return (
        finding.span.line == claim.line
        and finding.severity == claim.kind
        and (finding.code == claim.text or claim.text in finding.message)
    )
