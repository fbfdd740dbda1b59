"""Offers are worked out once for a piece of code, and edits once for each version of the text."""

from __future__ import annotations

from typing import Any

import pytest

from gradsight import fixing
from gradsight.analysis import analyze
from gradsight.fixing import fixes_for
from gradsight.model.finding import Finding
from gradsight.model.fix import Fix, apply_edits
from gradsight.model.settings import Settings
from gradsight.model.source import Source, Span
from gradsight.session.analyser import Incremental
from gradsight.session.buffer import Point, TextChange
from gradsight.session.documents import Document
from gradsight.session.fix_menu import OfferMemory, Workshop, make_plan, may_write_in_place, offer_key

TEXT = """import torch

x = torch.ones(3, requires_grad=True)


def f():
    y = torch.exp(x)
    y *= 3
    y.sum().backward()
"""
HERE = Span(8, 4, 8, 4)


@pytest.mark.parametrize(
    "line", ["y *= 2", "y[0] = 1", "x.mul_(2)", "F.relu(x, inplace=True)", "torch.add(x, y, out=z)", "y @= w", "y[a] [b] =c", "F.relu(x, True)",
             "x[0], y = a, b"]
)  # fmt: skip
def test_a_line_that_may_write_in_place_is_not_missed(line: str) -> None:
    assert may_write_in_place([line])


@pytest.mark.parametrize(
    "line",
    ["y = x * 2", "if y[0] == 1:", "f(a[0], b=1)", "super().__init__()", "f(a=1)", "a <= b", "a != b", ""],
)
def test_a_plain_line_costs_nothing(line: str) -> None:
    assert not may_write_in_place([line])


def test_an_offer_is_remembered_while_its_block_stays_the_same() -> None:
    document, memory = opened(), OfferMemory()
    [finding] = document.findings
    plan = make_plan(document, memory, {"fix", "rewrite"}, HERE, [finding], is_lazy=True)
    assert not plan.is_ready
    offers = plan.work(workshop(document), memory)
    document.edit(TextChange(Point(0, 0), Point(0, 0), "import math\n"))
    [moved] = document.findings
    again = make_plan(document, memory, {"fix", "rewrite"}, HERE.moved(1), [moved], is_lazy=True)
    assert again.is_ready
    assert [offer.title for offer in again.ready] == [offer.title for offer in offers]
    assert all(offer.edits is None for offer in again.ready)


@pytest.mark.parametrize("is_lazy", [True, False])
def test_a_fix_and_a_rewrite_that_do_the_same_are_offered_once(is_lazy: bool) -> None:
    document, memory = opened(), OfferMemory()
    [finding] = document.findings
    wanted = {"fix", "rewrite"}
    offers = make_plan(document, memory, wanted, HERE, [finding], is_lazy).work(workshop(document), memory)
    assert [offer.purpose for offer in offers if "`y = y * 3`" in offer.title] == ["fix"]
    document.edit(TextChange(Point(0, 0), Point(0, 0), "import math\n"))
    [moved] = document.findings
    again = make_plan(document, memory, wanted, HERE.moved(1), [moved], is_lazy)
    assert again.is_ready == is_lazy
    offers = again.work(workshop(document), memory)
    assert [offer.purpose for offer in offers if "`y = y * 3`" in offer.title] == ["fix"]
    alone = make_plan(document, memory, {"rewrite"}, HERE.moved(1), [moved], is_lazy)
    assert [offer.purpose for offer in alone.work(workshop(document), memory)] == ["rewrite"]


@pytest.mark.parametrize("is_lazy", [True, False])
def test_fixes_come_first_and_silence_last(is_lazy: bool) -> None:
    document, memory = opened(), OfferMemory()
    for _ in range(2):
        plan = make_plan(document, memory, {"fix", "rewrite", "suppress"}, HERE, document.findings, is_lazy)
        offers = plan.work(workshop(document), memory)
        assert offers[0].is_preferred
        assert [offer.purpose for offer in offers] == ["fix", "fix", "suppress", "suppress"]


def test_a_fix_does_not_hide_the_rewrite_of_another_line() -> None:
    text = TEXT.replace("    y *= 3\n", "    y *= 3\n    z = x * 2\n    z *= 3\n    print(z)\n")
    document, memory = opened(text), OfferMemory()
    both = Span(8, 0, 10, 10)
    errors = [finding for finding in document.findings if finding.severity == "error"]
    plan = make_plan(document, memory, {"fix", "rewrite"}, both, errors, is_lazy=False)
    titles = [(offer.purpose, offer.title) for offer in plan.work(workshop(document), memory)]
    assert [title for purpose, title in titles if purpose == "rewrite"] == ["rewrite as `z = z * 3`"]


@pytest.mark.parametrize("line", range(8, 13))
def test_a_statement_of_several_lines_is_rewritten_from_each_of_them(line: int) -> None:
    call = "    y = torch.nn.functional.dropout(\n        y,  # all\n\n        inplace=True,\n    )\n"
    document, memory = opened(TEXT.replace("    y *= 3\n", call)), OfferMemory()
    plan = make_plan(document, memory, {"rewrite"}, Span(line, 4, line, 4), [], is_lazy=False)
    assert len(plan.work(workshop(document), memory)) == 1


def test_a_changed_block_is_another_key() -> None:
    document = opened()
    [finding] = document.findings
    before = offer_key(document, finding)
    document.edit(TextChange(Point(8, 0), Point(8, 0), "    z = 1\n"))
    assert offer_key(document, document.findings[0]) != before


def test_whoever_takes_edits_at_once_gets_them_fresh() -> None:
    document, memory = opened(), OfferMemory()
    [finding] = document.findings
    for _ in range(2):
        plan = make_plan(document, memory, {"fix", "suppress"}, HERE, [finding], is_lazy=False)
        offers = plan.work(workshop(document), memory)
        assert all(offer.edits for offer in offers)
        assert apply_edits(TEXT, offers[0].edits or ()) == TEXT.replace("y *= 3", "y = y * 3")


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The findings whose fixes were worked out, by their code, as often as that happened."""
    codes: list[str] = []

    def counted(source: Source, finding: Finding, *args: Any, **options: Any) -> list[Fix]:
        codes.append(finding.code)
        return fixes_for(source, finding, *args, **options)

    monkeypatch.setattr(fixing, "fixes_for", counted)
    return codes


def test_a_chosen_fix_is_not_worked_out_a_second_time(computed: list[str]) -> None:
    document, memory = opened(), OfferMemory()
    [finding] = document.findings
    wanted = {"fix", "rewrite"}
    offered = make_plan(document, memory, wanted, HERE, [finding], True).work(workshop(document), memory)
    chosen = make_plan(document, memory, wanted, HERE, [finding], is_lazy=False)
    assert chosen.is_ready
    assert [offer.edits for offer in chosen.ready] == [offer.edits for offer in offered]
    assert all(offer.edits for offer in chosen.ready)
    assert computed == ["GS101"]


@pytest.mark.parametrize("change", ["text", "around", "settings", "reopened"])
def test_a_chosen_fix_is_worked_out_again_when_something_has_changed(
    change: str, computed: list[str]
) -> None:
    document, memory = opened(), OfferMemory()
    [finding] = document.findings
    make_plan(document, memory, {"fix"}, HERE, [finding], True).work(workshop(document), memory)
    if change == "text":
        document.edit(TextChange(Point(0, 0), Point(0, 0), "import math\n"))
        [finding] = document.findings
    elif change == "around":
        document.outdate()
    elif change == "settings":
        document.settings = Settings(ignore=("GS9",))
    else:
        document = opened(TEXT + "z = 1\n")
    plan = make_plan(document, memory, {"fix"}, HERE, [finding], is_lazy=False)
    assert not plan.is_ready
    fixed = plan.work(workshop(document), memory)[0]
    text = document.source.text
    assert apply_edits(text, fixed.edits or ()) == text.replace("y *= 3", "y = y * 3")
    assert computed == ["GS101", "GS101"]


def test_equal_findings_of_one_block_keep_their_own_edits() -> None:
    text = TEXT + "    y = torch.exp(x)\n    y *= 3\n    y.sum().backward()\n"
    document, memory = opened(text), OfferMemory()
    first, second = document.findings
    assert first.message == second.message
    for _ in range(2):
        for finding in (first, second):
            plan = make_plan(document, memory, {"fix"}, HERE, [finding], is_lazy=False)
            offers = plan.work(workshop(document), memory)
            assert {edit.span.line for edit in offers[0].edits or ()} == {finding.span.line}


def test_everything_safe_at_once_is_a_few_small_edits() -> None:
    offer = workshop(opened()).fix_all()
    assert offer is not None
    assert offer.edits is not None
    assert sum(len(edit.text) for edit in offer.edits) < 20
    assert apply_edits(TEXT, offer.edits) == TEXT.replace("y *= 3", "y = y * 3")


def opened(text: str = TEXT) -> Document:
    """The text, open and analysed."""
    document = Document("k", "/a.py", 1, text, Incremental())
    document.accept(analyze(document.source), document.edits, ())
    return document


def workshop(document: Document) -> Workshop:
    report = analyze(Source(document.path, document.source.text))
    return Workshop(document.source, Settings(), report, lambda source: analyze(source))
