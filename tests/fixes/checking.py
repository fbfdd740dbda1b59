"""The one way the tests of this folder ask for fixes: a text goes in, the text after the fix comes out."""

from __future__ import annotations

from textwrap import dedent

from gradsight.analysis import analyze
from gradsight.fixing import fixes_for, rewrites_at
from gradsight.model import Finding, Fix, Source, Span, apply_edits

PATH = "program.py"


def source_of(text: str) -> Source:
    return Source(PATH, dedent(text).lstrip("\n"))


def findings_of(source: Source, code: str) -> list[Finding]:
    return [finding for finding in analyze(source).findings if finding.code == code]


def fixes_of(text: str, code: str) -> tuple[Source, list[Fix]]:
    """The text as it is analysed, and the fixes of its first finding with this code."""
    source = source_of(text)
    found = findings_of(source, code)
    assert found, f"no {code} in the text: {[one.code for one in analyze(source).findings]}"
    return source, fixes_for(source, found[0])


def check(text: str, code: str, after: str, safety: str, place: int | None = None) -> Fix:
    """One of the fixes (the one at `place`, if given) leads to the text `after` and has this safety."""
    source, fixes = fixes_of(text, code)
    wanted = dedent(after).lstrip("\n")
    chosen = fixes if place is None else fixes[place : place + 1]
    results = [apply_edits(source.text, fix.edits) for fix in chosen]
    assert wanted in results, "\n----\n".join(results) or "no fix is offered"
    fix = chosen[results.index(wanted)]
    assert fix.safety == safety
    return fix


def check_none(text: str, code: str) -> None:
    """No fix is offered."""
    _, fixes = fixes_of(text, code)
    assert [fix.title for fix in fixes] == []


def check_safety(text: str, code: str, safety: str) -> None:
    """The best fix has this safety."""
    _, fixes = fixes_of(text, code)
    assert fixes
    assert fixes[0].safety == safety


def rewritten(text: str, line: int, column: int = 0) -> list[tuple[str, str]]:
    """The text after each rewrite that is offered at a place, and how safe it is."""
    fixes = rewrites_at(Source(PATH, text), Span(line, column, line, column))
    return [(apply_edits(text, fix.edits), fix.safety) for fix in fixes]


def check_rewrite(statement: str, after: str, before: str = "x = make()\n", safety: str = "safe") -> None:
    """A statement of its own is written out of place as told; the name x is read later."""
    ahead = f"import torch\nimport torch.nn.functional as F\nfrom torch import nn\n{before}"
    behind = "\nprint(x)\n"
    line = ahead.count("\n") + 1
    results = rewritten(ahead + statement + behind, line)
    assert [text[len(ahead) : -len(behind)] for text, _ in results] == [after]
    assert results[0][1] == safety
