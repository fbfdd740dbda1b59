"""Settings come by three ways, change while the server runs, and are never a reason to fall silent."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from tests.lsp.editor import FULL, Editor
from tests.lsp.programs import HAZARD

IGNORED = {"debounce": 0, "ignore": ["GS101"]}


def test_settings_come_with_initialize() -> None:
    with Editor(options=IGNORED) as editor:
        assert editor.codes(editor.open("file:///s/a.py", HAZARD)) == []


def test_settings_are_asked_for_and_asked_again_when_they_change() -> None:
    answers: dict[str, Any] = {"debounce": 0}
    with Editor(configuration=lambda scope: answers) as editor:
        uri = editor.open("file:///s/b.py", HAZARD)
        assert editor.codes(uri) == [("GS101", 5)]
        assert any(each["method"] == "workspace/didChangeConfiguration" for each in editor.registered)
        answers["ignore"] = ["GS1"]
        editor.notify("workspace/didChangeConfiguration", {"settings": None})
        editor.wait(lambda: editor.published[uri][-1]["diagnostics"] == [])


def test_a_client_that_cannot_be_asked_pushes_its_settings() -> None:
    with Editor(capabilities={}, options={"debounce": 0}) as editor:
        uri = editor.open("file:///s/c.py", HAZARD)
        assert editor.codes(uri) == [("GS101", 5)]
        settings = {"gradsight": {"severity": {"GS101": "info"}}}
        editor.notify("workspace/didChangeConfiguration", {"settings": settings})
        editor.wait(lambda: editor.published[uri][-1]["diagnostics"][0]["severity"] == 3)


def test_each_folder_has_its_own_settings(tmp_path: Path) -> None:
    loud, quiet = tmp_path / "loud", tmp_path / "quiet"
    loud.mkdir()
    quiet.mkdir()

    def configuration(scope: str | None) -> Any:
        return IGNORED if scope == quiet.as_uri() else {"debounce": 0}

    with Editor(folders=[loud, quiet], configuration=configuration) as editor:
        one = editor.open((loud / "a.py").as_uri(), HAZARD)
        other = editor.open((quiet / "a.py").as_uri(), HAZARD)
        editor.wait(lambda: editor.published.get(other, [{"diagnostics": 1}])[-1]["diagnostics"] == [])
        assert editor.codes(one) == [("GS101", 5)]


def test_a_folder_that_joins_brings_its_settings(tmp_path: Path) -> None:
    def configuration(scope: str | None) -> Any:
        return IGNORED if scope == tmp_path.as_uri() else {"debounce": 0}

    with Editor(configuration=configuration) as editor:
        uri = editor.open((tmp_path / "a.py").as_uri(), HAZARD)
        assert editor.codes(uri) == [("GS101", 5)]
        event = {"added": [{"uri": tmp_path.as_uri(), "name": "joined"}], "removed": []}
        editor.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        editor.wait(lambda: editor.published[uri][-1]["diagnostics"] == [])


def test_a_wrong_setting_is_said_once_and_the_default_stands() -> None:
    with Editor(options={"debounce": 0, "select": ["GS999"], "colour": 1}) as editor:
        uri = editor.open("file:///s/d.py", HAZARD)
        assert editor.codes(uri) == [("GS101", 5)]
        editor.replace(uri, HAZARD + "\n")
        assert editor.codes(uri) == [("GS101", 5)]
        assert len(editor.messages) == len(set(editor.messages)) == 2


def test_switched_off_nothing_is_said() -> None:
    with Editor(options={"enable": False}) as editor:
        assert editor.codes(editor.open("file:///s/e.py", HAZARD)) == []


def test_on_save_nothing_is_said_before_the_save() -> None:
    with Editor(options={"debounce": 0, "run": "onSave"}) as editor:
        uri = editor.open("file:///s/f.py", "import torch\n")
        assert editor.codes(uri) == []
        editor.replace(uri, HAZARD)
        editor.hover(uri, 0)
        assert editor.published[uri][-1]["diagnostics"] == []
        editor.save(uri)
        assert editor.codes(uri) == [("GS101", 5)]


def test_the_project_file_is_watched_by_the_client(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text("[tool.gradsight]\nignore = ['GS101']\n")
    with Editor(options={"debounce": 0}, folders=[tmp_path]) as editor:
        uri = editor.open((tmp_path / "a.py").as_uri(), HAZARD)
        assert editor.codes(uri) == []
        editor.wait(lambda: bool(watched(editor)))
        assert {each["globPattern"] for each in watched(editor)} >= {"**/*.py", "**/pyproject.toml"}
        project.write_text("[tool.gradsight]\nignore = []\n")
        changes = [{"uri": project.as_uri(), "type": 2}]
        editor.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        editor.wait(lambda: bool(editor.published[uri][-1]["diagnostics"]))


def test_for_a_client_that_does_not_watch_the_server_looks_itself(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text("[tool.gradsight]\nignore = ['GS101']\n")
    capabilities = copy.deepcopy(FULL)
    del capabilities["workspace"]["didChangeWatchedFiles"]
    with Editor(capabilities=capabilities, options={"debounce": 0}, folders=[tmp_path]) as editor:
        uri = editor.open((tmp_path / "a.py").as_uri(), HAZARD)
        assert editor.codes(uri) == []
        project.write_text("[tool.gradsight]\nignore = []\n")
        editor.wait(lambda: bool(editor.published[uri][-1]["diagnostics"]))


def test_a_changed_import_is_felt_where_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    layer = tmp_path / "layer.py"
    layer.write_text("def scale(t):\n    return t * 2\n")
    text = "import torch\nfrom layer import scale\nx = torch.ones(3, requires_grad=True)\ny = x.exp()\nscale(y)\ny.sum().backward()\n"
    with Editor(options={"debounce": 0}, folders=[tmp_path]) as editor:
        uri = editor.open((tmp_path / "main.py").as_uri(), text)
        assert editor.codes(uri) == []
        layer.write_text("def scale(t):\n    return t.mul_(2)\n")
        changes = [{"uri": layer.as_uri(), "type": 2}]
        editor.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        editor.wait(
            lambda: bool(editor.published.get(layer.as_uri(), [{"diagnostics": []}])[-1]["diagnostics"])
        )
        shown = editor.open(layer.as_uri(), layer.read_text())
        assert editor.codes(shown) == [("GS101", 2)]
        editor.replace(shown, "def scale(t):\n    return t * 2\n")
        editor.wait(lambda: editor.published[shown][-1]["diagnostics"] == [])


def test_a_client_that_pulls_is_asked_to_pull_again() -> None:
    capabilities = copy.deepcopy(FULL)
    capabilities["textDocument"]["diagnostic"] = {}
    capabilities["workspace"]["diagnostics"] = {"refreshSupport": True}
    answers: dict[str, Any] = {}
    with Editor(capabilities=capabilities, configuration=lambda scope: answers) as editor:
        uri = editor.open("file:///s/g.py", HAZARD)
        params = {"textDocument": {"uri": uri}}
        assert len(editor.request("textDocument/diagnostic", params)["items"]) == 1
        answers["ignore"] = ["GS1"]
        editor.notify("workspace/didChangeConfiguration", {"settings": None})
        editor.wait(lambda: "workspace/diagnostic/refresh" in editor.refreshes)
        assert editor.request("textDocument/diagnostic", params)["items"] == []


def watched(editor: Editor) -> list[dict[str, Any]]:
    """The patterns that the client was asked to watch."""
    return [
        watcher
        for each in editor.registered
        if each["method"] == "workspace/didChangeWatchedFiles"
        for watcher in each["registerOptions"]["watchers"]
    ]


def test_hints_and_lenses_are_drawn_again_when_settings_switch_them() -> None:
    capabilities = copy.deepcopy(FULL)
    capabilities["workspace"] |= {
        "inlayHint": {"refreshSupport": True},
        "codeLens": {"refreshSupport": True},
    }
    answers: dict[str, Any] = {"debounce": 0, "inlayHints": True}
    with Editor(capabilities=capabilities, configuration=lambda scope: answers) as editor:
        editor.codes(editor.open("file:///s/lens.py", HAZARD))
        editor.refreshes.clear()
        answers |= {"inlayHints": False, "codeLens": False}
        editor.notify("workspace/didChangeConfiguration", {"settings": None})
        wanted = {"workspace/inlayHint/refresh", "workspace/codeLens/refresh"}
        editor.wait(lambda: wanted <= set(editor.refreshes))
