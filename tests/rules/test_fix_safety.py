"""What a page says about the safety of its fixes is what the fixes say of themselves."""

from __future__ import annotations

import re

import pytest

from gradsight.analysis import analyze
from gradsight.fixing import fixes_for
from gradsight.model import Source
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


def safeties(rule: Rule, path: str, text: str) -> set[str]:
    """The classes of the fixes that are offered for this rule in a program."""
    source = Source(path, text)
    report = analyze(source)
    return {
        fix.safety
        for finding in report.findings
        if finding.code == rule.code
        for fix in fixes_for(source, finding, report=report)
    }
