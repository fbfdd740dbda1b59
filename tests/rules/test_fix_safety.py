"""What a page says about the safety of its fixes is what the fixes say of themselves."""

from __future__ import annotations

import re

import pytest

from gradsight.analysis import analyze
from gradsight.fixes.titles import CHANGES
from gradsight.fixing import fixes_for
from gradsight.model import Source
from gradsight.model.fix import Fix
from gradsight.model.rule import Rule
from gradsight.rules import ALL
from tests.rules.pages import FIX_SAFETY, blocks_of

NO_FIX = "No fix is offered"


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.name)
def test_the_page_names_the_safety_of_its_fixes(rule: Rule) -> None:
    said = rule.page.split(f"## {FIX_SAFETY}\n")[1]
    found = {safety for block in blocks_of(rule) for safety in safeties(rule, block.path, block.program())}
    assert not (found and said.strip().startswith(NO_FIX))
    assert found <= set(re.findall(r"\b(?:un)?safe\b", said))


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.name)
def test_an_unsafe_fix_says_what_it_changes_and_a_safe_one_does_not(rule: Rule) -> None:
    marks = tuple(f" ({mark})" for mark in CHANGES.values())
    for block in blocks_of(rule):
        for fix in offered(rule, block.path, block.program()):
            assert fix.title.endswith(marks) == (fix.safety == "unsafe"), fix.title


def safeties(rule: Rule, path: str, text: str) -> set[str]:
    """The classes of the fixes that are offered for this rule in a program."""
    return {fix.safety for fix in offered(rule, path, text)}


def offered(rule: Rule, path: str, text: str) -> list[Fix]:
    source = Source(path, text)
    report = analyze(source)
    return [
        fix
        for finding in report.findings
        if finding.code == rule.code
        for fix in fixes_for(source, finding, report=report)
    ]
