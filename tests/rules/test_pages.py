"""Every manual page is executed: GradSight and torch say on each line of each example what the page claims.

`known_disagreements.txt` lists the examples whose claims torch proves and GradSight does not keep yet, one per line with
its reason.  A listed example that starts to agree must leave the list, so the list only shrinks.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradsight.model.rule import Rule
from gradsight.rules import ALL
from tests.rules import static_run, torch_run
from tests.rules.pages import (
    FIX_SAFETY,
    NOT_REPORTED,
    OURS,
    TORCHS,
    USE_INSTEAD,
    WHY,
    Block,
    all_blocks,
    blocks_of,
    headings_of,
    repairs,
)

LONGEST_LINE = 110
BLOCKS = all_blocks()
KNOWN = {
    line.split()[0]
    for line in (Path(__file__).parent / "known_disagreements.txt").read_text().splitlines()
    if line.strip() and not line.startswith("#")
}


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSIGHT_STRICT", "1")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.id)
def test_torch_does_what_the_page_claims(block: Block) -> None:
    said = torch_run.run(block.path, block.text)
    assert torch_run.disagreements(block.claims(TORCHS), said) == []


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.id)
def test_gradsight_says_what_the_page_claims(block: Block) -> None:
    found = static_run.disagreements(block)
    if block.id in KNOWN:
        assert found, f"{block.id} agrees now: take it off known_disagreements.txt"
    else:
        assert found == []


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.name)
def test_a_page_has_its_headings_and_examples(rule: Rule) -> None:
    headings = headings_of(rule)
    assert headings[0] in WHY
    assert [heading for heading in headings if heading not in WHY] == [USE_INSTEAD, NOT_REPORTED, FIX_SAFETY]
    blocks = blocks_of(rule)
    assert blocks[0].heading in WHY
    assert any(block.heading == USE_INSTEAD for block in blocks)
    assert any(block.heading == NOT_REPORTED for block in blocks)


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.name)
def test_the_first_example_shows_the_rule_itself(rule: Rule) -> None:
    (first, *_) = blocks_of(rule)
    assert any(claim.text == rule.code for claim in first.claims(OURS))


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.id)
def test_what_is_right_is_shown_without_alarm(block: Block) -> None:
    claims = block.claims(OURS + TORCHS)
    if block.heading in (USE_INSTEAD, NOT_REPORTED):
        assert [claim for claim in claims if claim.kind not in ("hint", "warns")] == []
    else:
        assert claims


@pytest.mark.parametrize(("broken", "instead"), repairs(), ids=lambda block: block.id)
def test_the_repair_is_a_program_of_its_own(broken: Block, instead: Block) -> None:
    assert instead.bare_text() != broken.bare_text()
    assert instead.text == instead.bare_text()


def test_a_silent_fault_is_proven_by_an_assertion() -> None:
    unproven = [
        block.id
        for block in BLOCKS
        if block.heading == "What goes wrong silently"
        and not block.claims(TORCHS)
        and "assert " not in block.text
    ]
    assert not unproven


def test_known_disagreements_are_about_examples_that_exist() -> None:
    assert {block.id for block in BLOCKS} >= KNOWN


def test_examples_are_in_the_house_style() -> None:
    """Claims included: the pages are published with them, and the formatter reads published pages too."""
    long = [
        f"{block.id}: {line}"
        for block in BLOCKS
        for line in block.text.split("\n")
        if len(line) > LONGEST_LINE
    ]
    assert not long


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.name)
def test_a_page_leads_to_what_torch_documents_and_to_a_report(rule: Rule) -> None:
    links = re.findall(r"\]\((https://[^)\s]+)\)", rule.page)
    assert any(link.startswith("https://docs.pytorch.org/") for link in links), links
    reports = r"https://(github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+|discuss\.pytorch\.org/t/\S+)"
    assert any(re.fullmatch(reports, link) for link in links), links
