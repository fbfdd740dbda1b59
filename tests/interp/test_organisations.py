"""The same fault is told, and the same right form is not, however a program is organised."""

from __future__ import annotations

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source
from tests.interp.organisations import KINDS, ORGANISATIONS

NOT_TOLD = {
    "critic never cleared": {"each batch"},  # its optimizer is made elsewhere, and may clear as it steps
    "critic never stepped": {"each batch"},  # whoever has the object may step it
    "best that goes on": {"each batch"},
}
"""What an organisation leaves open."""


def told(text: str) -> set[str]:
    report = analyze(Source("program.py", text))
    assert not report.syntax_problems
    return {finding.code for finding in report.findings if finding.severity in ("error", "warning")}


@pytest.mark.parametrize("organisation", ORGANISATIONS)
@pytest.mark.parametrize("name", KINDS)
def test_a_fault_is_told_however_the_program_is_organised(name: str, organisation: str) -> None:
    kind = KINDS[name]
    wrong = ORGANISATIONS[organisation](kind, kind.wrong)
    if wrong and kind.code and organisation not in NOT_TOLD.get(name, ()):
        assert kind.code in told(wrong), wrong


@pytest.mark.parametrize("organisation", ORGANISATIONS)
@pytest.mark.parametrize("name", KINDS)
def test_the_right_form_is_silent_however_the_program_is_organised(name: str, organisation: str) -> None:
    kind = KINDS[name]
    right = ORGANISATIONS[organisation](kind, kind.right)
    if right:
        assert told(right) == set(), right
