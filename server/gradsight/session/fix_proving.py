"""Fixes that are tried before they are chosen: a program that shows a finding runs before and after each of them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from gradsight.model.finding import Finding
from gradsight.model.fix import apply_edits
from gradsight.model.source import Source
from gradsight.probe import trial
from gradsight.probe.host import private_folder
from gradsight.probe.outcome import Observed
from gradsight.probe.request import ProbeRequest
from gradsight.probe.trial import Trial
from gradsight.session.fix_menu import Offer, Workshop
from gradsight.session.proving import Run, with_text
from gradsight.session.tried_fixes import Tried
from gradsight.session.units import units_of

MOST_FIXES = 3


async def try_fixes(
    run: Run, request: ProbeRequest, finding: Finding, text: str, fixes: Sequence[Offer]
) -> list[tuple[str, Trial]]:
    """Run a text that shows a finding, and the same text after each fix; what torch showed, by title."""
    base = with_text(request, text)
    label = f"Verifying the fix of {finding.code}"
    found = []
    with private_folder() as folder:
        seen, right = os.path.join(folder, "seen.pt"), os.path.join(folder, "right.pt")
        first = await run(trial.before(base, seen), label)
        compared = seen if isinstance(first, Observed) else None
        reference = trial.reference(base, finding.code, right)
        if reference is not None:
            outcome = await run(reference, label)
            compared = right if isinstance(outcome, Observed) else None
        for fix in fixes[:MOST_FIXES]:
            fixed = with_text(base, apply_edits(text, fix.edits or ()))
            second = await run(trial.after(fixed, compared), label)
            found.append((fix.title, trial.judged(finding.code, first, second, compared is not None)))
    return found


def fixes_in(workshop: Workshop, finding: Finding, text: str) -> list[Offer]:
    """The fixes of a finding in a text that was cut out of the document, or in the document itself."""
    if text == workshop.source.text:
        return workshop.fixes([finding])
    source = Source(workshop.source.path, text)
    report = workshop.check(source)
    same = [
        each for each in report.findings if (each.code, each.span.line) == (finding.code, finding.span.line)
    ]
    return Workshop(source, workshop.settings, report, workshop.check).fixes(same[:1])


def tried_in(text: str, finding: Finding, found: Sequence[tuple[str, Trial]]) -> list[Tried]:
    """What was found about fixes, bound to the code of a text that it rests on."""
    lines = [finding.span.line, *(step.span.line for step in finding.related if step.path == finding.path)]
    units = units_of(text, lines)
    return [Tried(finding.code, title, result, units) for title, result in found]
