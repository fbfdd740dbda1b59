"""How many findings of a text have a safe fix, for the entry of a menu that applies all of them.

It is counted while nobody waits, and only once the user rests: a menu never waits for it, and says the number when it is known.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gradsight.model.finding import Finding
from gradsight.session import fix_menu
from gradsight.session.documents import Document
from gradsight.session.fix_menu import ALARMS, DocumentVersion, Offer
from gradsight.session.schedule import Urgency

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer

REST = 0.5
"""Seconds without an edit after which counting begins."""
MOST_COUNTED = 25


class FixCounts:
    """The count of the text that was asked about last, and of no other: a menu belongs to one text."""

    def __init__(self) -> None:
        self._known: tuple[DocumentVersion, int] | None = None
        self._wanted: DocumentVersion | None = None

    def of(self, ls: GradSightServer, document: Document) -> int | None:
        """How many findings of a text have a safe fix; None while that is not known, and then it is counted."""
        version = DocumentVersion.of(document)
        if self._known is not None and self._known[0] == version:
            return self._known[1]
        if self._wanted != version:
            self._wanted = version
            ls.in_background(self._count(ls, document, version))
        return None

    async def _count(self, ls: GradSightServer, document: Document, version: DocumentVersion) -> None:
        await asyncio.sleep(REST)
        count = 0
        alarms = [each for each in ls.session.findings_of(document) if each.severity in ALARMS]
        for finding in alarms[: MOST_COUNTED + 1]:
            # One finding, one job: whatever else is to be done comes in between.
            is_current = DocumentVersion.of(document) == version and document.is_fresh
            if self._wanted != version or not is_current or len(alarms) > MOST_COUNTED:
                break
            count += any(offer.is_preferred for offer in await _offers(ls, document, finding))
        else:
            self._known = (version, count)
        if self._wanted == version:
            self._wanted = None


async def _offers(ls: GradSightServer, document: Document, finding: Finding) -> list[Offer]:
    """The fixes of a finding, worked out when nothing else is to be done; menus find them ready."""
    memory = ls.session.offers
    plan = fix_menu.make_plan(document, memory, {"fix"}, finding.span, [finding], is_lazy=True)
    if plan.is_ready:
        return list(plan.ready)
    workshop = ls.session.workshop(document)
    return await ls.session.worker.submit(Urgency.BACKGROUND, lambda: plan.work(workshop, memory))
