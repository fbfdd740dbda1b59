"""Actions repair the text as it is: right columns, right kinds, complete for every client."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.lsp.editor import FULL, Editor
from tests.lsp.programs import EMOJI, EMOJI_REPAIRED, HAZARD, REPAIRED, SAFE

SUPPRESSED = HAZARD.replace("y *= 3", "y *= 3  # gradsight: ignore[GS101]")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("is_lazy", [True, False])
def test_the_preferred_fix_repairs_the_line_behind_an_emoji(encoding: str, is_lazy: bool) -> None:
    with Editor(capabilities=able(encoding, is_lazy), options={"debounce": 0}) as editor:
        uri = opened(editor, EMOJI)
        [action] = [each for each in editor.actions(uri, EMOJI.index("*= 3")) if each.get("isPreferred")]
        assert ("edit" in action) is not is_lazy
        assert action["kind"] == "quickfix"
        resolved = editor.resolve(action) if is_lazy else action
        assert editor.applied(uri, resolved["edit"]) == EMOJI_REPAIRED


def test_a_finding_can_be_silenced_on_its_line(editor: Editor) -> None:
    uri = opened(editor, HAZARD)
    check(editor, uri, "GradSight: ignore GS101 on this line", SUPPRESSED)


def test_every_in_place_statement_can_be_written_out_of_place(editor: Editor) -> None:
    uri = opened(editor, SAFE)
    assert editor.diagnostics(uri) == []
    [action] = editor.actions(uri, SAFE.index("*= 3"), only=["refactor"])
    assert action["kind"] == "refactor.rewrite.gradsight"
    assert editor.applied(uri, editor.resolve(action)["edit"]) == SAFE.replace("y *= 3", "y = y * 3")


def test_everything_safe_is_fixed_at_once_and_a_second_time_nothing(editor: Editor) -> None:
    text = HAZARD + "\nz = x.sigmoid()\nz += 1\nz.sum().backward()\n"
    uri = opened(editor, text)
    [action] = editor.actions(uri, 0, only=["source.fixAll"])
    assert action["kind"] == "source.fixAll.gradsight"
    assert action["title"] == "GradSight: fix all safe findings (2 fixes, nothing left)"
    fixed = editor.applied(uri, editor.resolve(action)["edit"])
    assert fixed == text.replace("y *= 3", "y = y * 3").replace("z += 1", "z = z + 1")
    editor.replace(uri, fixed)
    assert editor.actions(uri, 0, only=["source.fixAll"]) == []


def test_what_is_left_is_counted_with_what_is_fixed(editor: Editor) -> None:
    uri = opened(editor, HAZARD + "\nz = x * 2\nz.backward()\n")
    [action] = editor.actions(uri, 0, only=["source.fixAll"])
    assert action["title"] == "GradSight: fix all safe findings (1 fix, 1 left, no safe fix)"


@pytest.mark.parametrize(
    ("only", "kinds"),
    [
        (["quickfix"], {"quickfix"}),
        (["refactor.rewrite"], {"refactor.rewrite.gradsight"}),
        (["source.fixAll.gradsight"], {"source.fixAll.gradsight"}),
        (["source.organizeImports"], set()),
        (["source.fixAll.ruff"], set()),
        (["quickfix", "refactor"], {"quickfix"}),  # The rewrite would do what the fix does.
        ([""], {"quickfix", "source.fixAll.gradsight"}),
    ],
)
def test_only_what_was_asked_for_is_offered(editor: Editor, only: list[str], kinds: set[str]) -> None:
    uri = opened(editor, HAZARD)
    assert {each["kind"] for each in editor.actions(uri, HAZARD.index("*= 3"), only=only)} == kinds


def test_an_action_is_computed_on_the_text_as_it_is_when_it_is_resolved(editor: Editor) -> None:
    uri = opened(editor, HAZARD)
    [action] = [each for each in editor.actions(uri, HAZARD.index("*= 3")) if each.get("isPreferred")]
    end = HAZARD.index("x = ")
    editor.change(uri, (end, end, "a = '😀'; b = 1\n\n"))
    place = editor.texts[uri].index("y *= 3")
    editor.change(uri, (place, place, "c = '😀'; "))
    resolved = editor.resolve(action)
    assert editor.applied(uri, resolved["edit"]) == editor.texts[uri].replace("y *= 3", "y = y * 3")


def test_typing_elsewhere_does_not_change_the_offer(editor: Editor) -> None:
    uri = opened(editor, HAZARD)
    before = [each["title"] for each in editor.actions(uri, HAZARD.index("*= 3"))]
    editor.change(uri, (0, 0, "import math\n"))
    place = editor.texts[uri].index("*= 3")
    assert [each["title"] for each in editor.actions(uri, place)] == before
    check(editor, uri, before[0], editor.texts[uri].replace("y *= 3", "y = y * 3"))


def test_an_action_whose_cause_is_gone_has_no_edit(editor: Editor) -> None:
    uri = opened(editor, HAZARD)
    [action] = [each for each in editor.actions(uri, HAZARD.index("*= 3")) if each.get("isPreferred")]
    editor.replace(uri, REPAIRED)
    assert editor.resolve(action).get("edit") is None


def test_a_range_that_was_echoed_in_bytes_does_no_harm() -> None:
    with Editor(capabilities=able("utf-16", False), options={"debounce": 0}) as editor:
        uri = opened(editor, EMOJI)
        [shown] = editor.diagnostics(uri)
        echoed = copy.deepcopy(shown)
        for end in ("start", "end"):
            echoed["range"][end]["character"] += 3
        start = EMOJI.index("é =")
        action = next(each for each in editor.actions(uri, start, echoed=[echoed]) if each.get("isPreferred"))
        assert editor.applied(uri, action["edit"]) == EMOJI_REPAIRED
        assert action["diagnostics"] == [echoed]


def test_a_client_that_only_knows_commands_has_them_applied() -> None:
    capabilities = {"workspace": {"applyEdit": True}}
    with Editor(capabilities=capabilities, options={"debounce": 0}) as editor:
        uri = opened(editor, HAZARD)
        command = editor.actions(uri, HAZARD.index("*= 3"))[0]
        assert set(command) == {"title", "command", "arguments"}
        params = {"command": command["command"], "arguments": command["arguments"]}
        editor.request("workspace/executeCommand", params)
        assert editor.texts[uri] == REPAIRED


def test_a_client_that_may_carry_out_all_offers_gets_the_repair_of_the_finding_it_names() -> None:
    capabilities = able("utf-16", is_lazy=False)
    del capabilities["textDocument"]["codeAction"]["isPreferredSupport"]
    with Editor(capabilities=capabilities, options={"debounce": 0}) as editor:
        twice = HAZARD.replace("y.sum()", "v = x.exp()\nv *= 3\n(y + v).sum()")
        uri = editor.open("file:///a/kate.py", twice)
        first, second = editor.diagnostics(uri)
        assert len(editor.actions(uri, twice.index("v *="))) > 1
        [action] = editor.actions(uri, 0, len(twice), echoed=[second])
        assert editor.applied(uri, action["edit"]) == twice.replace("v *= 3", "v = v * 3")
        [action] = editor.actions(uri, 0, len(twice), echoed=[first])
        assert editor.applied(uri, action["edit"]) == twice.replace("y *= 3", "y = y * 3")


def test_a_text_without_findings_has_no_quick_fix(editor: Editor) -> None:
    uri = opened(editor, REPAIRED)
    assert editor.actions(uri, REPAIRED.index("y = y"), only=["quickfix"]) == []


def test_a_broken_text_offers_nothing_that_would_break_it_more(editor: Editor) -> None:
    text = HAZARD + "def half(:\n"
    uri = opened(editor, text)
    for action in editor.actions(uri, text.index("*= 3")):
        assert editor.resolve(action).get("edit") is None


def test_a_document_that_was_never_opened_has_no_actions(editor: Editor) -> None:
    editor.texts["file:///a/never.py"] = HAZARD
    assert editor.actions("file:///a/never.py", 0) == []


COUNT = iter(range(1000))


def opened(editor: Editor, text: str) -> str:
    """A fresh document with its findings published."""
    uri = editor.open(f"file:///a/{next(COUNT)}.py", text)
    editor.diagnostics(uri)
    return uri


def able(encoding: str, is_lazy: bool) -> dict[str, Any]:
    """Full capabilities with one encoding, with or without lazy edits."""
    capabilities = copy.deepcopy(FULL)
    capabilities["general"]["positionEncodings"] = [encoding]
    if not is_lazy:
        del capabilities["textDocument"]["codeAction"]["resolveSupport"]
    return capabilities


def check(editor: Editor, uri: str, title: str, expected: str) -> None:
    """The action with this title leaves this text."""
    place = editor.texts[uri].index("*= 3")
    [action] = [each for each in editor.actions(uri, place) if each["title"] == title]
    assert editor.applied(uri, editor.resolve(action)["edit"]) == expected
