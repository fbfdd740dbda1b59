"""Questions of the editor: the interpreter, a traceback, the facts of the user's torch."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.editor import Editor, Refused
from tests.lsp.programs import HAZARD

TRACEBACK = """Traceback (most recent call last):
  File "{path}", line 6, in <module>
    y.sum().backward()
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: ...
"""


def ask(
    command: str, *arguments: Any, options: dict[str, Any] | None = None, folder: Path | None = None
) -> Any:
    """One command to a server of its own."""
    options = options or {"interpreter": sys.executable}
    folders = [folder] if folder is not None else []
    with Editor(options=options, folders=folders, configuration=lambda scope: options) as editor:
        params = {"command": f"gradsight.{command}", "arguments": list(arguments)}
        return editor.request("workspace/executeCommand", params)


def test_the_environment_names_python_and_torch() -> None:
    told = ask("environment")
    assert told["python"] == sys.executable
    assert told["version"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    assert told["torch"] == "2.13.0"


def test_the_environment_says_how_much_of_the_file_was_left_out(tmp_path: Path) -> None:
    uri = (tmp_path / "train.py").as_uri()
    with Editor(folders=[tmp_path]) as editor:
        editor.open(
            uri, "import torch\n\ndef train(net, x, opt):\n    net(x).sum().backward()\n    opt.step()\n"
        )
        params = {"command": "gradsight.environment", "arguments": [uri]}
        assert editor.request("workspace/executeCommand", params)["notAnalysed"] == ""


def test_an_interpreter_that_cannot_be_run_has_no_version(tmp_path: Path) -> None:
    told = ask("environment", options={"interpreter": str(tmp_path / "absent")})
    assert (told["version"], told["torch"]) == ("", "")


def test_an_interpreter_without_torch_is_told_as_such(tmp_path: Path) -> None:
    import venv

    venv.create(tmp_path / "bare", with_pip=False, symlinks=os.name != "nt")
    told = ask("environment", options={"interpreter": str(tmp_path / "bare" / "bin" / "python")})
    assert told["version"]
    assert told["torch"] == ""


def test_the_interpreter_of_an_untrusted_workspace_is_not_run(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    program.chmod(0o755)
    ask("environment", options={"interpreter": str(program), "probe": {"allowed": False}})
    assert not (tmp_path / "ran").exists()


def test_facts_of_an_untrusted_workspace_are_not_measured() -> None:
    with pytest.raises(Refused, match="not trusted"):
        ask("refreshFacts", options={"interpreter": sys.executable, "probe": {"allowed": False}})


def test_facts_that_cannot_be_measured_say_why(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="the facts in use stay as they are"):
        ask("refreshFacts", options={"interpreter": str(tmp_path / "absent")})


def test_a_traceback_leads_to_the_line_in_a_file_that_is_not_open(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(HAZARD)
    (tmp_path / "pyproject.toml").write_text("")
    markdown = ask("explainError", TRACEBACK.format(path=path), folder=tmp_path)["markdown"]
    assert f"[train.py:5]({path.as_uri()}#L5) `y *= 3`" in markdown
    assert "the traceback passed through it" in markdown


def test_files_outside_the_workspace_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "elsewhere" / "train.py"
    path.write_text(HAZARD)
    folder = tmp_path / "project"
    folder.mkdir()
    markdown = ask("explainError", TRACEBACK.format(path=path), folder=folder)["markdown"]
    assert "train.py:5" not in markdown
    assert "Run File" in markdown
