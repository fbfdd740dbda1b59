"""The end waits for nobody, leaves nothing behind, and floods no log; a cancelled request is really cancelled."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lsp.editor import Editor, Refused
from tests.lsp.programs import HAZARD

SLOW = str(Path(__file__).with_name("slow_server.py"))
MOST_LOG_LINES = 5


def test_shutdown_while_an_analysis_and_requests_are_under_way(tmp_path: Path) -> None:
    editor, marks = slow(tmp_path)
    editor.open("file:///e/a.py", HAZARD)
    waiting = [
        editor.ask("workspace/executeCommand", {"command": "gradsight.work"}),
        *(ask_for_actions(editor, "file:///e/a.py") for _ in range(20)),
    ]
    wait_for(marks, "working")
    wait_for(marks, "analysing")
    editor.request("shutdown", None)
    for identity in waiting:
        with pytest.raises(Refused):
            editor.answer(identity)
    editor.notify("exit", None)
    assert editor.process.wait(30) == 0
    assert "cancelled" in marks.read_text()
    check_quiet(editor)


def test_what_is_sent_after_exit_changes_nothing(tmp_path: Path) -> None:
    editor, marks = slow(tmp_path)
    editor.open("file:///e/a.py", HAZARD)
    wait_for(marks, "analysing")
    editor.request("shutdown", None)
    try:
        editor.notify("exit", None)
        for _ in range(200):
            ask_for_actions(editor, "file:///e/a.py")
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert editor.process.wait(30) == 0
    check_quiet(editor)


def test_a_client_that_vanishes_while_work_is_under_way_ends_the_server(tmp_path: Path) -> None:
    editor, marks = slow(tmp_path)
    editor.ask("workspace/executeCommand", {"command": "gradsight.work"})
    wait_for(marks, "working")
    assert editor.process.stdin is not None
    editor.process.stdin.close()
    assert editor.process.wait(30) == 1
    check_quiet(editor)


def test_a_client_that_no_longer_reads_ends_the_server() -> None:
    command = [sys.executable, "-m", "gradsight.lsp"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}).encode()
        process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        process.stdin.flush()
        assert process.wait(60) == 1
        assert process.stderr.read() == b""


def test_cancelling_a_request_cancels_its_command(tmp_path: Path) -> None:
    editor, marks = slow(tmp_path)
    identity = editor.ask("workspace/executeCommand", {"command": "gradsight.work"})
    wait_for(marks, "working")
    editor.notify("$/cancelRequest", {"id": identity})
    with pytest.raises(Refused) as refused:
        editor.answer(identity)
    assert refused.value.code == -32800
    wait_for(marks, "cancelled")
    assert "done" not in marks.read_text()
    assert editor.stop() == 0
    check_quiet(editor)


def test_messages_are_answered_while_an_analysis_runs(tmp_path: Path) -> None:
    editor, marks = slow(tmp_path)
    uri = editor.open("file:///e/busy.py", HAZARD)
    wait_for(marks, "analysing")
    assert "saves its *output*" in (editor.hover(uri, HAZARD.index("exp")) or "")
    assert editor.stop() == 0


def slow(folder: Path) -> tuple[Editor, Path]:
    """An editor with a server that is busy for minutes, and the file in which it leaves its marks."""
    marks = folder / "marks"
    return Editor(command=[sys.executable, SLOW, str(marks)], options={"debounce": 0}), marks


def ask_for_actions(editor: Editor, uri: str) -> int:
    start = {"line": 4, "character": 1}
    params = {
        "textDocument": {"uri": uri},
        "range": {"start": start, "end": start},
        "context": {"diagnostics": []},
    }
    return editor.ask("textDocument/codeAction", params)


def wait_for(marks: Path, word: str) -> None:
    """Wait until the server has left a mark."""
    for _ in range(6000):
        if marks.exists() and word in marks.read_text():
            return
        time.sleep(0.01)
    raise AssertionError(f"the server never came to: {word}")


def check_quiet(editor: Editor) -> None:
    """The log is short and has no traceback."""
    editor.finish_log()
    assert len(editor.log) <= MOST_LOG_LINES, "".join(editor.log)[:2000]
    assert "Traceback" not in "".join(editor.log)
