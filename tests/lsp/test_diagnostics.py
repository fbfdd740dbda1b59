"""Diagnostics are about the text as it is, carry what the client can show, and go when their cause goes."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.editor import FULL, Editor
from tests.lsp.programs import EMOJI, HAZARD, REPAIRED, SAFE


def test_a_finding_is_published_with_version_severity_page_and_trail(editor: Editor) -> None:
    uri = editor.open("file:///d/full.py", HAZARD, version=7)
    [found] = editor.diagnostics(uri)
    assert editor.published[uri][-1]["version"] == 7
    assert (found["code"], found["severity"], found["source"]) == ("GS101", 1, "gradsight")
    assert found["codeDescription"]["href"].endswith("inplace-on-saved.md")
    lines = [step["location"]["range"]["start"]["line"] + 1 for step in found["relatedInformation"]]
    assert lines == [4, 6]
    assert found["data"]["code"] == "GS101"


def test_a_client_that_can_do_little_gets_little(tmp_path: Path) -> None:
    with Editor(capabilities={}, options={"debounce": 0}) as plain:
        uri = plain.open("file:///d/plain.py", HAZARD)
        [found] = plain.diagnostics(uri)
        assert set(found) == {"range", "message", "severity", "code", "source"}
        assert "line 4" in found["message"]
        assert "version" not in plain.published[uri][-1]


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 13), ("utf-16", 10), ("utf-32", 9)])
def test_the_column_is_right_in_every_encoding(encoding: str, column: int) -> None:
    with Editor(capabilities=speaking(encoding), options={"debounce": 0}) as editor:
        assert editor.encoding == encoding
        [found] = editor.diagnostics(editor.open("file:///d/emoji.py", EMOJI))
        assert found["range"]["start"] == {"line": 4, "character": column}


def test_the_first_encoding_that_both_know_is_taken() -> None:
    with Editor(capabilities={"general": {"positionEncodings": ["utf-7", "utf-8"]}}) as editor:
        assert editor.encoding == "utf-8"


def test_a_repaired_text_has_no_diagnostics(editor: Editor) -> None:
    uri = editor.open("file:///d/repair.py", HAZARD)
    assert len(editor.diagnostics(uri)) == 1
    editor.replace(uri, REPAIRED)
    assert editor.diagnostics(uri) == []


def test_an_edit_is_answered_with_the_version_it_made(editor: Editor) -> None:
    uri = editor.open("file:///d/typing.py", SAFE)
    assert editor.diagnostics(uri) == []
    start = SAFE.index("x * 2")
    editor.change(uri, (start, start + 5, "x.exp("))
    editor.change(uri, (start + 6, start + 6, ")"))
    assert editor.codes(uri) == [("GS101", 5)]


def test_several_edits_in_one_message_apply_one_after_the_other(editor: Editor) -> None:
    uri = editor.open("file:///d/several.py", SAFE)
    start = SAFE.index("x * 2")
    editor.change(uri, (start, start + 5, ""), (start, start, "x"), (start + 1, start + 1, ".exp()"))
    assert editor.codes(uri) == [("GS101", 5)]


def test_a_broken_file_keeps_its_findings_in_moved_places(editor: Editor) -> None:
    uri = editor.open("file:///d/broken.py", HAZARD)
    assert editor.codes(uri) == [("GS101", 5)]
    editor.change(uri, (len("import torch\n"), len("import torch\n"), "def half(\n"))
    assert editor.codes(uri) == [("GS101", 6)]


def test_the_parts_of_a_broken_file_that_parse_are_fresh(editor: Editor) -> None:
    uri = editor.open("file:///d/fresh.py", HAZARD + "\n\ndef half(:\n    pass\n")
    editor.diagnostics(uri)
    start = editor.texts[uri].index("y *= 3")
    editor.change(uri, (start, start + 6, "y = y * 3"))
    assert editor.codes(uri) == []


def test_closing_a_document_clears_it(editor: Editor) -> None:
    uri = editor.open("file:///d/closed.py", HAZARD)
    assert len(editor.diagnostics(uri)) == 1
    editor.close(uri)
    editor.wait(lambda: editor.published[uri][-1]["diagnostics"] == [])


def test_a_document_may_be_opened_again_with_a_lower_version(editor: Editor) -> None:
    uri = editor.open("file:///d/again.py", HAZARD, version=9)
    editor.diagnostics(uri)
    editor.close(uri)
    editor.wait(lambda: editor.published[uri][-1]["diagnostics"] == [])
    editor.published[uri].clear()
    editor.open(uri, HAZARD, version=0)
    assert editor.codes(uri) == [("GS101", 5)]


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "inmemory://model/1", "git:/a.py?ref=x"])
def test_a_document_that_is_no_file_is_checked_too(editor: Editor, uri: str) -> None:
    assert editor.codes(editor.open(uri, HAZARD)) == [("GS101", 5)]


def test_a_document_in_another_language_is_left_alone(editor: Editor) -> None:
    item = {"uri": "file:///d/notes.md", "languageId": "markdown", "version": 1, "text": HAZARD}
    editor.notify("textDocument/didOpen", {"textDocument": item})
    assert editor.request("gradsight/text", {"uri": item["uri"]}) is None


def test_an_excluded_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.gradsight]\nexclude = ['old/']\n")
    (tmp_path / "old").mkdir()
    with Editor(options={"debounce": 0}, folders=[tmp_path]) as editor:
        assert editor.codes(editor.open((tmp_path / "old" / "a.py").as_uri(), HAZARD)) == []
        assert editor.codes(editor.open((tmp_path / "new.py").as_uri(), HAZARD)) == [("GS101", 5)]


def test_a_comment_that_silences_nothing_is_shown_as_unnecessary(editor: Editor) -> None:
    uri = editor.open(
        "file:///d/unused.py", REPAIRED.replace("x.exp()", "x.exp()  # gradsight: ignore[GS101]")
    )
    [found] = editor.diagnostics(uri)
    assert (found["code"], found["tags"]) == ("GS001", [1])


def test_a_finding_in_an_imported_file_is_shown_there(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    layer = tmp_path / "layer.py"
    layer.write_text("def scale(t):\n    t.mul_(2)\n    return t\n")
    text = "import torch\nfrom layer import scale\nx = torch.ones(3, requires_grad=True)\nscale(x).sum().backward()\n"
    with Editor(options={"debounce": 0}, folders=[tmp_path]) as editor:
        uri = editor.open((tmp_path / "main.py").as_uri(), text)
        editor.diagnostics(uri)
        editor.wait(lambda: layer.as_uri() in editor.published)
        [found] = editor.published[layer.as_uri()][-1]["diagnostics"]
        assert (found["code"], found["range"]["start"]["line"]) == ("GS102", 1)
        editor.close(uri)
        editor.wait(lambda: editor.published[layer.as_uri()][-1]["diagnostics"] == [])


def test_a_client_that_pulls_is_never_pushed_to() -> None:
    with Editor(capabilities=pulling(), options={"debounce": 0}) as editor:
        assert editor.server["capabilities"]["diagnosticProvider"]["workspaceDiagnostics"]
        uri = editor.open("file:///d/pull.py", HAZARD)
        first = pull(editor, uri)
        assert (first["kind"], [each["code"] for each in first["items"]]) == ("full", ["GS101"])
        again = pull(editor, uri, first["resultId"])
        assert again == {"kind": "unchanged", "resultId": first["resultId"]}
        editor.replace(uri, REPAIRED)
        assert pull(editor, uri, first["resultId"])["items"] == []
        everything = editor.request("workspace/diagnostic", {"previousResultIds": []})
        assert [(item["uri"], item["items"]) for item in everything["items"]] == [(uri, [])]
        assert editor.published == {}


def test_a_closed_file_leaves_the_list_of_a_client_that_has_forgotten_it() -> None:
    """VS Code asks once more while the tab closes, and no longer says that it knows the file."""
    with Editor(capabilities=pulling(), options={"debounce": 0}) as editor:
        uri = editor.open("file:///d/closed.py", HAZARD)
        assert len(pull(editor, uri)["items"]) == 1
        editor.close(uri)
        answer = editor.request("workspace/diagnostic", {"previousResultIds": []})
        [item] = answer["items"]
        assert (item["uri"], item["items"]) == (uri, [])
        known = [{"uri": uri, "value": item["resultId"]}]
        editor.request("workspace/diagnostic", {"previousResultIds": known})
        assert editor.request("workspace/diagnostic", {"previousResultIds": []})["items"] == []


def test_the_whole_workspace_is_checked_where_the_user_wants_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    for name, text in {"bad.py": HAZARD, "good.py": REPAIRED, "other.py": "x = 1\n"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "lib.py").write_text(HAZARD)
    with Editor(capabilities=pulling(), options={"scope": "workspace"}, folders=[tmp_path]) as editor:
        answer = editor.request("workspace/diagnostic", {"previousResultIds": []})
        found = {Path(item["uri"]).name: len(item["items"]) for item in answer["items"]}
        assert found == {"bad.py": 1, "good.py": 0, "other.py": 0}
        known = [{"uri": item["uri"], "value": item["resultId"]} for item in answer["items"]]
        (tmp_path / "bad.py").write_text(REPAIRED)
        (tmp_path / "other.py").unlink()
        again = editor.request("workspace/diagnostic", {"previousResultIds": known})
        changed = {Path(item["uri"]).name: item["items"] for item in again["items"] if item["kind"] == "full"}
        assert changed == {"bad.py": []}


def test_a_client_that_does_not_pull_is_not_offered_to() -> None:
    with Editor() as editor:
        assert "diagnosticProvider" not in editor.server["capabilities"]


@pytest.mark.parametrize(
    ("name", "refreshes"),
    [("Neovim", True), ("Neovim", False), ("helix", False)],
    ids=["Neovim 0.12", "Neovim 0.10", "Helix"],
)
def test_a_client_that_would_not_ask_again_is_pushed_to(name: str, refreshes: bool) -> None:
    capabilities = pulling()
    capabilities["workspace"]["diagnostics"]["refreshSupport"] = refreshes
    with Editor(capabilities=capabilities, options={"debounce": 0}, name=name) as editor:
        assert "diagnosticProvider" not in editor.server["capabilities"]
        uri = editor.open("file:///d/pushed.py", HAZARD)
        assert editor.codes(uri) == [("GS101", 5)]
        assert editor.refreshes == []


def test_a_client_that_pulls_and_takes_no_refresh_is_answered_and_not_bothered() -> None:
    capabilities = pulling()
    capabilities["workspace"]["diagnostics"]["refreshSupport"] = False
    with Editor(capabilities=capabilities, options={"debounce": 0}) as editor:
        uri = editor.open("file:///d/pulled.py", HAZARD)
        assert [item["code"] for item in pull(editor, uri)["items"]] == ["GS101"]
        assert editor.refreshes == []
        assert editor.published.get(uri, []) == []


def test_everything_that_is_shown_is_part_of_a_result() -> None:
    from gradsight.lsp.diagnostics import _identity
    from gradsight.lsp.wire_types import types

    place = types.Range(types.Position(1, 2), types.Position(1, 5))
    step = types.DiagnosticRelatedInformation(types.Location("file:///a.py", place), "kept here")

    def told(**changed: Any) -> str:
        fields: dict[str, Any] = {
            "range": place,
            "message": "m",
            "severity": types.DiagnosticSeverity.Error,
            "code": "GS101",
            "related_information": [step],
            "data": {"code": "GS101", "certainty": "certain"},
        }
        return _identity([types.Diagnostic(**{**fields, **changed})])

    elsewhere = types.Range(types.Position(2, 2), types.Position(2, 5))
    changes: dict[str, Any] = {
        "range": elsewhere,
        "message": "confirmed: m",
        "severity": types.DiagnosticSeverity.Hint,
        "code": "GS102",
        "code_description": types.CodeDescription("https://e.co"),
        "tags": [types.DiagnosticTag.Unnecessary],
        "related_information": [
            types.DiagnosticRelatedInformation(types.Location("file:///a.py", elsewhere), "kept here")
        ],
        "data": {"code": "GS101", "certainty": "certain", "verdict": "not-reached"},
    }
    assert told() == told()
    marks = {told(**{name: value}) for name, value in changes.items()}
    assert len(marks | {told()}) == len(changes) + 1


LAYER = "def scale(t):\n    t.mul_(2)\n    return t\n"
USES_LAYER = "import torch\nfrom layer import scale\nx = torch.ones(3, requires_grad=True)\nscale(x).sum().backward()\n"


def test_opening_and_closing_a_file_refreshes_what_another_one_shows(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "layer.py").write_text(LAYER)
    with Editor(capabilities=pulling(), options={"debounce": 0}, folders=[tmp_path]) as editor:
        layer = editor.open((tmp_path / "layer.py").as_uri(), LAYER)
        first = pull(editor, layer)
        assert first["items"] == []
        main = editor.open((tmp_path / "main.py").as_uri(), USES_LAYER)
        pull(editor, main)
        editor.wait(lambda: editor.refreshes == ["workspace/diagnostic/refresh"])
        second = pull(editor, layer, first["resultId"])
        assert [(item["code"], item["range"]["start"]["line"]) for item in second["items"]] == [("GS102", 1)]
        editor.close(main)
        editor.wait(lambda: len(editor.refreshes) == 2)
        assert pull(editor, layer, second["resultId"])["items"] == []


MODEL = (
    "import torch\nfrom torch import nn\n\n\nclass Gate(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.linear = nn.Linear(4, 4)\n\n    def forward(self, x):\n        gate = torch.sigmoid(self.linear(x))\n"
    "        gate *= 2\n        return gate\n"
)
TRAINING = "import torch\n\nfrom model import Gate\n\nGate()(torch.ones(2, 4)).sum().backward()\n"


def test_opening_the_file_that_trains_makes_a_guess_a_certainty(tmp_path: Path) -> None:
    for name, text in (("pyproject.toml", ""), ("model.py", MODEL), ("train.py", TRAINING)):
        (tmp_path / name).write_text(text)
    with Editor(capabilities=pulling(), options={"debounce": 0}, folders=[tmp_path]) as editor:
        model = editor.open((tmp_path / "model.py").as_uri(), MODEL)
        guess = pull(editor, model)
        assert [(item["code"], item["severity"]) for item in guess["items"]] == [("GS101", 2)]
        training = editor.open((tmp_path / "train.py").as_uri(), TRAINING)
        pull(editor, training)
        editor.wait(lambda: len(editor.refreshes) > 0)
        sure = pull(editor, model, guess["resultId"])
        assert [(item["code"], item["severity"]) for item in sure["items"]] == [("GS101", 1)]
        assert "train.py" in str(sure["items"][0]["relatedInformation"])
        editor.close(training)
        editor.wait(lambda: len(editor.refreshes) > 1)
        assert [item["severity"] for item in pull(editor, model, sure["resultId"])["items"]] == [2]


def test_a_file_that_is_shown_otherwise_than_on_disk_counts_as_shown(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "layer.py").write_text(LAYER.replace("t.mul_(2)", "t = t.mul(2)"))
    with Editor(capabilities=pulling(), options={"debounce": 0}, folders=[tmp_path]) as editor:
        main = editor.open((tmp_path / "main.py").as_uri(), USES_LAYER)
        assert pull(editor, main)["items"] == []
        layer = editor.open((tmp_path / "layer.py").as_uri(), LAYER)
        editor.wait(lambda: len(editor.refreshes) > 0)
        pull(editor, main)
        assert [item["code"] for item in pull(editor, layer)["items"]] == ["GS102"]


def test_a_file_that_is_too_large_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.gradsight]\nmaxMegabytes = 0.00005\n")
    with Editor(options={"debounce": 0}, folders=[tmp_path]) as editor:
        uri = editor.open((tmp_path / "large.py").as_uri(), HAZARD)
        assert editor.diagnostics(uri) == []
        editor.wait(lambda: any("large.py is larger than" in str(said) for said in editor.messages))
        assert "requires grad" not in str(editor.hover(uri, HAZARD.index("y *=")))


def test_a_special_file_in_the_place_of_settings_stops_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pyproject.toml")
    with Editor(options={"debounce": 0}, folders=[tmp_path]) as editor:
        assert editor.codes(editor.open((tmp_path / "a.py").as_uri(), HAZARD)) == [("GS101", 5)]


def test_pulling_a_document_that_is_not_open_gives_nothing() -> None:
    with Editor(capabilities=pulling()) as editor:
        assert pull(editor, "file:///d/never.py")["items"] == []


def pull(editor: Editor, uri: str, previous: str | None = None) -> dict[str, Any]:
    params: dict[str, Any] = {"textDocument": {"uri": uri}}
    if previous is not None:
        params["previousResultId"] = previous
    answer: dict[str, Any] = editor.request("textDocument/diagnostic", params)
    return answer


def speaking(encoding: str) -> dict[str, Any]:
    """Full capabilities with one encoding."""
    return {**copy.deepcopy(FULL), "general": {"positionEncodings": [encoding]}}


def pulling() -> dict[str, Any]:
    """Full capabilities of a client that pulls."""
    capabilities = copy.deepcopy(FULL)
    capabilities["textDocument"]["diagnostic"] = {"dynamicRegistration": False}
    capabilities["workspace"]["diagnostics"] = {"refreshSupport": True}
    return capabilities
