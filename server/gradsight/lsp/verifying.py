"""Repairs that are tried before they are chosen: the probe runs before and after, and the code action says what came out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradsight.lsp.running import request_of, run_shown, with_text
from gradsight.model.finding import Finding
from gradsight.model.fix import apply_edits
from gradsight.model.source import Source
from gradsight.session.documents import Document
from gradsight.session.repairs import Offer, Workshop
from gradsight.session.schedule import Urgency
from gradsight.session.trials import Tried
from gradsight.session.units import units_of

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer
    from gradsight.probe.trial import Trial

MOST_REPAIRS = 3


async def has_repair(ls: GradSightServer, document: Document, finding: Finding, title: str = "") -> bool:
    """Whether a finding has a repair with this title, or any."""
    offers = await _offers(ls, document, finding, document.source.text)
    return any(offer.edits and title in ("", offer.title) for offer in offers)


def answer(tried: Sequence[tuple[str, Trial]]) -> dict[str, Any]:
    """What came out of trying repairs, in one sentence and in detail."""
    return {
        "summary": "GradSight " + "; ".join(f"{name}: {_sentence(trial)}" for name, trial in tried),
        "trials": [
            {
                "title": name,
                "verified": trial.is_good,
                "sentence": trial.sentence,
                "torch": trial.torch,
                "differences": [list(pair) for pair in trial.differences],
            }
            for name, trial in tried
        ],
    }


async def try_repairs(
    ls: GradSightServer, document: Document, finding: Finding, text: str, title: str = ""
) -> list[tuple[str, Trial]]:
    """Run a text that shows a finding, and the same text after each repair; what torch showed, by title."""
    from gradsight.probe import trial
    from gradsight.probe.host import private_folder
    from gradsight.probe.outcome import Observed

    offers = await _offers(ls, document, finding, text)
    chosen = [offer for offer in offers if offer.edits and title in ("", offer.title)][:MOST_REPAIRS]
    if not chosen:
        return []
    base = with_text(request_of(ls, document), text)
    label = f"Verifying the repair of {finding.code}"
    found = []
    with private_folder() as folder:
        seen, right = os.path.join(folder, "seen.pt"), os.path.join(folder, "right.pt")
        first = await run_shown(ls, trial.before(base, seen), label)
        compared = seen if isinstance(first, Observed) else None
        reference = trial.reference(base, finding.code, right)
        if reference is not None:
            outcome = await run_shown(ls, reference, label)
            compared = right if isinstance(outcome, Observed) else None
        for offer in chosen:
            repaired = with_text(base, apply_edits(text, offer.edits or ()))
            second = await run_shown(ls, trial.after(repaired, compared), label)
            result = trial.judged(finding.code, first, second, compared is not None)
            found.append((offer.title, result))
    lines = [finding.span.line, *(step.span.line for step in finding.related if step.path == finding.path)]
    units = units_of(document.source.text, lines)
    for name, result in found:
        ls.session.evidence.trials.record(document.path, Tried(finding.code, name, result, units))
    return found


def sentence_about(ls: GradSightServer, document: Document, finding: Finding) -> str:
    """What to add to a proof about the repairs that were tried."""
    text, line = document.source.text, finding.span.line
    good = ls.session.evidence.trials.good_titles(document.path, text, finding.code, line)
    return f"; verified: {good[0]}" if good else ""


async def _offers(ls: GradSightServer, document: Document, finding: Finding, text: str) -> Sequence[Offer]:
    """The repairs of a finding in a text that was cut out of the document, or in the document itself."""
    workshop = ls.session.workshop(document)

    def work() -> list[Offer]:
        if text == document.source.text:
            return workshop.fixes([finding])
        source = Source(document.path, text)
        report = workshop.check(source)
        same = [
            each
            for each in report.findings
            if (each.code, each.span.line) == (finding.code, finding.span.line)
        ]
        return Workshop(source, workshop.settings, report, workshop.check).fixes(same[:1])

    return await ls.session.worker.submit(Urgency.AWAITED, work)


def _sentence(trial: Trial) -> str:
    return f"verified on torch {trial.torch} ({trial.sentence})" if trial.is_good else trial.sentence
