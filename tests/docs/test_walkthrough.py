"""The pictures of the walkthrough show the sample as it is, in the words that a user reads there."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise

import pytest

from gradsight.analysis import analyze
from gradsight.model.source import Source
from tests.house.tree import ROOT

PAGES = ROOT / "client" / "media" / "walkthrough"
SAMPLE = (ROOT / "client" / "samples" / "first_steps.py").read_text()
TEXT = re.compile(r"<text [^>]*>([^<]*)</text>")


def words_in(name: str) -> list[str]:
    return [unescape(text) for text in TEXT.findall((PAGES / name).read_text())]


@pytest.mark.parametrize("page", ["see", "prove", "repair"])
def test_a_page_shows_its_picture_and_the_picture_shows_the_sample(page: str) -> None:
    assert f"]({page}.svg)" in (PAGES / f"{page}.md").read_text()
    lines = SAMPLE.splitlines()
    name, *words = words_in(f"{page}.svg")
    assert name == "first_steps.py"
    shown = [(int(number), code) for number, code in pairwise(words) if number.isdigit()]
    assert shown
    for number, code in shown:
        if not code.startswith("+ "):
            assert lines[number - 1].strip() == code.removeprefix("- ")


def test_the_picture_of_a_finding_has_the_words_of_its_trail() -> None:
    [finding] = [each for each in analyze(Source("first_steps.py", SAMPLE)).findings if each.code == "GS101"]
    words = words_in("see.svg")
    for role in ("saved", "needed"):
        [step] = [each for each in finding.related if each.role == role]
        assert words[words.index(str(step.span.line)) + 2] == step.message
    own = words[words.index(str(finding.span.line)) + 2]
    assert own in finding.message
