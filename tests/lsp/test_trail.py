"""The way from a finding to its cause: highlights in every editor, places to go to, the page of the rule, the menu."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.tree import ROOT
from tests.lsp.editor import FULL, Editor
from tests.lsp.programs import HAZARD

OWN = {"debounce": 0, "client": {"pages": True}, "probe": {"allowed": True}}


@pytest.fixture(scope="module")
def own() -> Iterator[Editor]:
    with Editor(FULL, OWN) as editor:
        yield editor


def opened(editor: Editor, text: str = HAZARD) -> str:
    uri = editor.open("file:///t/trail.py", text, version=editor.versions.get("file:///t/trail.py", 0) + 1)
    editor.diagnostics(uri)
    return uri


def test_the_lines_of_a_finding_are_highlighted_while_the_cursor_is_on_it(editor: Editor) -> None:
    uri = opened(editor)
    place = {"textDocument": {"uri": uri}, "position": editor.position(uri, HAZARD.index("*= 3"))}
    found = editor.request("textDocument/documentHighlight", place)
    assert sorted(each["range"]["start"]["line"] + 1 for each in found) == [4, 5, 6]
    place["position"] = {"line": 0, "character": 0}
    assert editor.request("textDocument/documentHighlight", place) is None


def test_the_places_of_a_finding_can_be_asked_for(editor: Editor) -> None:
    uri = opened(editor)
    steps = editor.request("workspace/executeCommand", {"command": "gradsight.trail", "arguments": [uri, 4]})[
        "steps"
    ]
    assert {step["role"]: step["line"] + 1 for step in steps} == {"saved": 4, "written": 5, "needed": 6}
    assert steps[0]["message"] == "`exp` saves its output here"
    nowhere = {"command": "gradsight.trail", "arguments": [uri, 0]}
    assert editor.request("workspace/executeCommand", nowhere) == {"steps": []}


def test_the_page_of_a_rule_needs_no_web(editor: Editor) -> None:
    uri = opened(editor)
    asked = {"command": "gradsight.rulePage", "arguments": [uri, 4]}
    page = editor.request("workspace/executeCommand", asked)
    assert page["code"] == "GS101"
    assert page["markdown"].startswith("# GS101 inplace-on-saved")
    choice = editor.request("workspace/executeCommand", {**asked, "arguments": []})
    assert choice["markdown"] == ""
    assert ["GS302", "grad-alias"] in [rule[:2] for rule in choice["rules"]]


def test_our_own_editor_is_told_only_what_it_does_not_show_itself(own: Editor, tmp_path: Path) -> None:
    uri = opened(own)
    said = own.hover(uri, HAZARD.index("y *= 3"))
    assert said is not None
    assert said.index("**`y`**") < said.index("**Why:**")
    assert "[the save](file:///t/trail.py#L4) (line 4)" in said
    assert "[the backward](file:///t/trail.py#L6) (line 6)" in said
    assert "command:gradsight.explainRule?%5B%22GS101%22%5D" in said
    assert "overwrites the output" not in said


def test_the_menu_of_our_own_editor_fixes_proves_explains_and_ignores(own: Editor) -> None:
    uri = opened(own)
    titles = [each["title"] for each in own.actions(uri, HAZARD.index("*= 3"))]
    wanted = [
        "GradSight: replace with `y = y * 3`",
        "GradSight: replace with `y = x.exp().clone()`",
        "GradSight: test these fixes on my torch",
        "GradSight: prove GS101 on my torch",
        "GradSight: explain GS101",
        "GradSight: ignore GS101 on this line",
        "GradSight: ignore GS101 in this file",
        "GradSight: ignore GS101 in this workspace",
    ]
    assert titles[: len(wanted)] == wanted


def test_the_menu_ends_with_all_fixes_where_there_are_several_findings(own: Editor) -> None:
    everything = "GradSight: apply all safe fixes in this file"
    uri = opened(own)
    titles = [each["title"] for each in own.actions(uri, HAZARD.index("*= 3"), only=["quickfix"])]
    assert everything not in titles
    twice = HAZARD.replace("y.sum()", "z = y.tanh()\nz += 1\nz.sum()")
    own.replace(uri, twice)
    assert len(own.diagnostics(uri)) == 2
    last = own.actions(uri, twice.index("*= 3"), only=["quickfix"])[-1]
    assert (last["title"], last["command"]["command"]) == (everything, "gradsight.fixAll")


def test_the_number_of_all_fixes_is_said_once_it_is_known(own: Editor) -> None:
    everything = "GradSight: apply all safe fixes in this file"
    twice = HAZARD.replace("y.sum()", "z = y.tanh()\nz += 1\nz.sum()")
    uri = opened(own, twice)

    def last() -> str:
        return str(own.actions(uri, twice.index("*= 3"), only=["quickfix"])[-1]["title"])

    # A menu never waits for the number.
    assert last() == everything
    own.wait(lambda: last() == f"{everything} (2)")
    # Another text has another number, and one fix is not called all of them.
    unsafe = twice.replace("z += 1\nz.sum()", "z")
    own.replace(uri, unsafe)
    assert len(own.diagnostics(uri)) == 2
    own.wait(lambda: everything not in last())


def test_a_rule_is_ignored_in_a_file_by_one_comment(own: Editor) -> None:
    uri = opened(own)
    [action] = [
        each for each in own.actions(uri, HAZARD.index("*= 3")) if each["title"].endswith("in this file")
    ]
    changed = own.applied(uri, own.resolve(action)["edit"])
    assert changed == f"# gradsight: ignore-file[GS101]\n{HAZARD}"
    own.open(uri, changed, version=own.versions[uri] + 1)
    assert own.diagnostics(uri) == []


def test_no_command_is_registered_by_the_client_and_by_the_server(editor: Editor) -> None:
    """An editor that meets a name twice refuses the second, and the server does not start."""
    offered = editor.server["capabilities"]["executeCommandProvider"]["commands"]
    source = (ROOT / "client" / "src" / "commands.ts").read_text(encoding="utf-8")
    own = set(re.findall(r'^      "(gradsight\.[\w.]+)": \(', source, re.MULTILINE))
    assert len(own) > 10
    assert own & set(offered) == set()
