"""Text of others is shown as text: it acts on no terminal and is no Markdown."""

from __future__ import annotations

import re

import pytest

from gradsight.model.card import TensorCard
from gradsight.model.finding import Finding, Related
from gradsight.model.report import Coverage, Gap, Report
from gradsight.model.showing import as_code, as_markdown, in_place, unescaped, visible
from gradsight.model.source import Span
from gradsight.session.gaps import gap_card, log_gaps, not_analysed
from gradsight.session.hovering import finding_card, plain_text
from gradsight.session.tensor_text import tensor_card
from gradsight.session.tracebacks import Suspect, explanation

MARK = re.compile(r"(?<!\\)(?:!\[|\]\(|<\w|\*\w|(?<!\w)_\w|`)")
IMAGE = "d['![](https://e.co/a)']"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünï ☃ 名", "plain ünï ☃ 名"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\n::error::b\r\t", "a\\n::error::b\\r\\t"),
        ("b\udcff", "b\\xff"),
        ("\x9b31m", "\\x9b31m"),
        ("turned\u202e", "turned\\u202e"),
    ],
)
def test_what_acts_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_in_place_keeps_columns() -> None:
    assert in_place("a\x1b[2J\tb\u202e") == "a\ufffd[2J\tb\ufffd"


@pytest.mark.parametrize(
    "text", [IMAGE, "*a* **b** _c_", "<img src=x>", "`code`", "[a](b)", "a|b", "x_y.add_(z)", "\\*", "&lt;"]
)
def test_markdown_of_a_text_reads_as_the_text(text: str) -> None:
    assert unescaped(as_markdown(text)) == text
    assert not MARK.search(as_markdown(text))


def test_names_inside_words_stay_readable() -> None:
    assert as_markdown("requires_grad of my_loss") == "requires_grad of my_loss"


def test_code_has_a_fence_of_its_own() -> None:
    assert as_code("a") == "`a`"
    assert as_code("a`b``c") == "```a`b``c```"
    assert as_code("`a`") == "`` `a` ``"


def finding() -> Finding:
    step = Related("saved", f"exp keeps {IMAGE}", "/p/![x](y).py", Span(2, 0, 2, 1))
    message = f"{IMAGE} is changed in place by add_"
    return Finding(
        "GS101", "inplace-on-saved", message, "error", "certain", "/p/a.py", Span(5, 0, 5, 1), (step,)
    )


def test_a_hover_shows_source_text_as_text() -> None:
    card = finding_card(finding())
    told = card.splitlines()[2:5]
    assert "changed in place" in told[0]
    assert "exp keeps" in told[2]
    assert not MARK.search("\n".join(told))
    assert f"{IMAGE} is changed in place by add_" in plain_text(card)


def test_a_tensor_card_keeps_names_in_their_fence() -> None:
    card = tensor_card(TensorCard("a`![](b)", Span(1, 0, 1, 1), True, False, 0, view_of="`x`"))
    assert "``a`![](b)``" in card
    assert "`` `x` ``" in card


def test_an_explained_error_shows_source_text_as_text() -> None:
    text = explanation(
        "one of the variables needed for gradient computation has been modified by an inplace operation",
        [Suspect(finding(), True)],
        lambda path, line: "d['`![](https://e.co/a)`'] += 1",
        lambda path, line: f"file://{path}#L{line}",
    )
    assert "``d['`![](https://e.co/a)`'] += 1``" in text
    assert "keeps d\\['!\\[\\](https://e.co/a)'\\]" in text
    assert "[!\\[x\\](y).py:2]" in text


# What was not understood.


def test_the_hover_of_a_line_tells_what_is_not_known_there() -> None:
    gaps = (
        Gap("call of foo.bar", 8),
        Gap("loop of <b>", 8, 3, "budget"),
        Gap("call in another file", 8, path="/p/b.py"),
    )
    card = gap_card(gaps, 8)
    assert card == "*not followed to the end: loop of \\<b\\>; not known to GradSight: call of foo.bar*"
    assert gap_card(gaps, 9) == ""


def test_status_says_how_many_functions_were_left_out() -> None:
    assert not_analysed(Report("a.py", coverage=Coverage(31, 2))) == "2 of 31 functions not analysed"
    assert not_analysed(Report("a.py", coverage=Coverage(31, 0))) == ""
    assert not_analysed(None) == ""


def test_gaps_are_logged_and_faults_of_ours_as_errors(caplog: pytest.LogCaptureFixture) -> None:
    gaps = (Gap("call of foo", 3), Gap("ZeroDivisionError in step", 7, kind="internal"))
    with caplog.at_level("INFO"):
        log_gaps(Report("/p/a.py", gaps=gaps, coverage=Coverage(31, 2)))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "/p/a.py: 2 of 31 functions not analysed"),
        ("INFO", "/p/a.py:3: call of foo (unknown, 1)"),
        ("ERROR", "/p/a.py:7: ZeroDivisionError in step (internal, 1)"),
    ]
