"""The manual's own examples: what a page shows is what its fix makes of the first example, and safe fixes run."""

from __future__ import annotations

import contextlib
import io

import pytest

from gradsight.analysis import analyze
from gradsight.fixing import fixes_for
from gradsight.model import Fix, Source, apply_edits
from gradsight.rules import ALL
from tests.fixes.torch_running import grads_of
from tests.rules.pages import Block, all_blocks, repairs

# The fixes of these rules lead from the first example of the page to the one that it says to use instead, exactly.
EXACT = """GS101 GS102 GS103 GS105 GS106 GS107 GS108 GS201 GS202 GS203 GS204 GS206 GS207 GS209 GS211 GS301 GS303 GS304
GS306 GS401 GS402 GS404 GS405 GS501 GS502 GS503 GS504 GS505 GS506 GS507 GS509 GS601 GS602 GS603 GS604 GS605 GS701
GS704""".split()
PAIRS = {first.rule.code: (first, instead) for first, instead in repairs()}


def results(block: Block) -> list[tuple[Fix, str]]:
    """The fixes of an example's own rule, with the text that each one makes."""
    source = Source(block.path, block.program())
    report = analyze(source)
    return [
        (fix, apply_edits(source.text, fix.edits))
        for finding in report.findings
        if finding.code == block.rule.code
        for fix in fixes_for(source, finding, report=report)
    ]


@pytest.mark.parametrize("code", EXACT)
def test_a_fix_leads_to_what_the_page_says_to_use(code: str) -> None:
    first, instead = PAIRS[code]
    assert instead.program().strip() in [text.strip() for _, text in results(first)]


@pytest.mark.parametrize("block", all_blocks(), ids=lambda block: block.id)
def test_safe_fixes_of_examples_run_on_torch(block: Block) -> None:
    for fix, text in results(block):
        if fix.safety == "safe":
            with contextlib.redirect_stdout(io.StringIO()):
                grads_of(text, block.path)


def test_every_rule_with_a_fix_is_known() -> None:
    from gradsight.fixing import BUILDERS

    assert set(BUILDERS) <= {rule.code for rule in ALL}
