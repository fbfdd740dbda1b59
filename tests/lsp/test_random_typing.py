"""After a long session of random typing the server has the client's text, and says what a fresh check says."""

from __future__ import annotations

import pytest

from gradsight.analysis import analyze
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from tests.house.tree import ROOT
from tests.lsp.editor import Editor
from tests.lsp.programs import EMOJI
from tests.lsp.test_diagnostics import speaking
from tests.lsp.typing_session import type_at_random

EDITS = 500
PROGRAMS = sorted((ROOT / "fixtures" / "programs").glob("*.py"))[::60]


@pytest.mark.parametrize(("encoding", "newline"), [("utf-16", "\n"), ("utf-8", "\r\n"), ("utf-32", "\r")])
def test_a_long_session_ends_with_the_right_text_and_the_right_findings(encoding: str, newline: str) -> None:
    with Editor(capabilities=speaking(encoding), options={"debounce": 0}) as editor:
        for number, path in enumerate(PROGRAMS[:2]):
            text = (EMOJI + path.read_text(encoding="utf-8")).replace("\n", newline)
            uri = editor.open(f"file:///r/{number}.py", text)
            type_at_random(editor, uri, EDITS // 2, seed=number)
            check(editor, uri)


def check(editor: Editor, uri: str) -> None:
    """The server's text is the client's; as soon as it parses, its findings are those of a fresh check."""
    assert editor.request("gradsight/text", {"uri": uri}) == editor.texts[uri]
    if fresh(editor.texts[uri]) is None:
        end = len(editor.texts[uri])
        editor.change(uri, (0, end, EMOJI), (0, 0, "# repaired\n"))
    found = [(each["code"], each["range"]["start"]["line"] + 1) for each in editor.diagnostics(uri)]
    assert found == fresh(editor.texts[uri])


def fresh(text: str) -> list[tuple[str, int]] | None:
    """What a fresh check says; None for a text that does not parse as a whole."""
    report = analyze(Source("/r/fresh.py", text), Settings())
    if report.syntax_problems:
        return None
    return [
        (finding.code, finding.span.line)
        for finding in (*report.findings, *report.unused_suppressions)
        if finding.severity != "hint"
    ]
