"""Fixes that are tried on torch for the editor: the code action then says what came out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradsight.lsp.probe_requests import request_of, run_shown
from gradsight.model.finding import Finding
from gradsight.session.documents import Document
from gradsight.session.fix_menu import Offer
from gradsight.session.schedule import Urgency

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer
    from gradsight.probe.trial import Trial


async def has_fix(ls: GradSightServer, document: Document, finding: Finding, title: str = "") -> bool:
    """Whether a finding has a fix with this title, or any."""
    return bool(await _fixes(ls, document, finding, document.source.text, title))


def answer(tried: Sequence[tuple[str, Trial]]) -> dict[str, Any]:
    """What came out of trying fixes, in one sentence and in detail."""
    return {
        "summary": "GradSight: " + "; ".join(f"{name}: {_sentence(trial)}" for name, trial in tried),
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


async def try_fixes(
    ls: GradSightServer, document: Document, finding: Finding, text: str, title: str = ""
) -> list[tuple[str, Trial]]:
    """Try the fixes of a finding in a text that shows it, and keep what torch showed; by title."""
    from gradsight.session import fix_proving

    chosen = await _fixes(ls, document, finding, text, title)
    if not chosen:
        return []
    found = await fix_proving.try_fixes(run_shown(ls), request_of(ls, document), finding, text, chosen)
    for tried in fix_proving.tried_in(document.source.text, finding, found):
        ls.session.evidence.trials.record(document.path, tried)
    return found


def sentence_about(ls: GradSightServer, document: Document, finding: Finding) -> str:
    """What to add to a proof about the fixes that were tried."""
    text, line = document.source.text, finding.span.line
    good = ls.session.evidence.trials.good_titles(document.path, text, finding.code, line)
    return f". The fix works: {good[0]}" if good else ""


async def _fixes(
    ls: GradSightServer, document: Document, finding: Finding, text: str, title: str
) -> list[Offer]:
    """The fixes of a finding in a text, with this title or with any."""
    from gradsight.session.fix_proving import fixes_in

    workshop = ls.session.workshop(document)
    found = await ls.session.worker.submit(Urgency.AWAITED, lambda: fixes_in(workshop, finding, text))
    return [offer for offer in found if offer.edits and title in ("", offer.title)]


def _sentence(trial: Trial) -> str:
    return f"works on torch {trial.torch}: {trial.sentence}" if trial.is_good else trial.sentence
