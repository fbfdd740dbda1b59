"""Whatever is sent, it gets its answer, and the conversation goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lsp.editor import Editor, Refused
from tests.lsp.programs import HAZARD

PARSE_ERROR, INVALID_REQUEST, NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
NOT_INITIALIZED, CANCELLED = -32002, -32800


@pytest.fixture(scope="module")
def tried() -> Iterator[Editor]:
    """A server that has to bear a lot; the log may tell of it, without tracebacks."""
    with Editor(options={"debounce": 0}) as editor:
        yield editor


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"not json", PARSE_ERROR),
        (b"{", PARSE_ERROR),
        (b"\xff\xfe", PARSE_ERROR),
        (b"[" * 100_000, PARSE_ERROR),
        (b"[]", INVALID_REQUEST),
        (b"[1, 2]", INVALID_REQUEST),
        (b"null", INVALID_REQUEST),
        (b"{}", INVALID_REQUEST),
        (b'{"jsonrpc": "1.0", "method": "x"}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0"}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "method": 5}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "method": "x", "id": {}}', INVALID_REQUEST),
    ],
)
def test_what_is_no_message_is_answered_with_an_error(tried: Editor, body: bytes, code: int) -> None:
    tried.send_raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert refusal(tried, lambda: tried.answer(None)) == code
    check_alive(tried)


@pytest.mark.parametrize(
    "noise", [b"\r\n\r\n", b"hello\r\n\r\n", b"Content-Length: x\r\n\r\n", b"\x00" * 1000]
)
def test_noise_between_messages_is_passed_over(tried: Editor, noise: bytes) -> None:
    tried.send_raw(noise + b"\r\n\r\n")
    check_alive(tried)


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("gradsight/unknown", {}, NOT_FOUND),
        ("$/unknown", {}, NOT_FOUND),
        ("textDocument/rename", {"textDocument": {"uri": "a"}, "position": {"line": 0, "character": 0}, "newName": "b"}, NOT_FOUND),
        ("textDocument/hover", None, INVALID_PARAMS),
        ("textDocument/hover", {"textDocument": 5}, INVALID_PARAMS),
        ("textDocument/hover", {"textDocument": {"uri": "a"}, "position": {"line": -1, "character": "x"}}, INVALID_PARAMS),
        ("textDocument/codeAction", [], INVALID_PARAMS),
        ("initialize", {"capabilities": {}}, INVALID_REQUEST),
        ("workspace/executeCommand", {"command": "nothing"}, INVALID_PARAMS),
        ("workspace/executeCommand", {"command": "gradsight.apply", "arguments": []}, INVALID_PARAMS),
        ("workspace/executeCommand", {"command": "gradsight.probeFile", "arguments": [{"a": 1}]}, INVALID_PARAMS),
        ("workspace/executeCommand", {"command": "gradsight.probeFile", "arguments": ["a", "b"]}, INVALID_PARAMS),
    ],
)  # fmt: skip
def test_a_request_that_cannot_be_answered_is_refused(
    tried: Editor, method: str, params: Any, code: int
) -> None:
    assert refusal(tried, lambda: tried.request(method, params)) == code
    check_alive(tried)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("gradsight/unknown", {}),
        ("$/unknown", None),
        ("textDocument/didChange", {"textDocument": {"uri": "file:///c/never.py", "version": 1}, "contentChanges": []}),
        ("textDocument/didChange", {"textDocument": {}}),
        ("textDocument/didClose", {"textDocument": {"uri": "file:///c/never.py"}}),
        ("textDocument/didSave", {"textDocument": {"uri": "file:///c/never.py"}}),
        ("textDocument/didOpen", {"textDocument": {"uri": 5}}),
        ("notebookDocument/didChange", {"notebookDocument": {"uri": "x", "version": 1}, "change": {}}),
        ("notebookDocument/didClose", {"notebookDocument": {"uri": "x"}, "cellTextDocuments": []}),
        ("$/cancelRequest", {"id": "nothing"}),
        ("$/cancelRequest", {"id": {"not": "an id"}}),
        ("$/cancelRequest", [1]),
        ("window/workDoneProgress/cancel", {"token": "nothing"}),
        ("$/setTrace", {"value": "verbose"}),
        ("workspace/didChangeWatchedFiles", {"changes": [{"uri": "file:///c/never.py", "type": 3}]}),
        ("workspace/didChangeConfiguration", {"settings": "nonsense"}),
    ],
)  # fmt: skip
def test_a_notification_that_means_nothing_is_passed_over(tried: Editor, method: str, params: Any) -> None:
    tried.notify(method, params)
    check_alive(tried)


def test_an_answer_to_nothing_is_passed_over(tried: Editor) -> None:
    tried.send({"id": "nothing", "result": {}})
    tried.send({"id": 99, "error": {"code": 1, "message": "no"}})
    check_alive(tried)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "file:///",
        "file:///a%00b/x.py",
        "file:///c/%zz.py",
        "nothing",
        "http://a/b.py",
        "file:///c/" + "x" * 5000 + ".py",
    ],
)
def test_any_address_can_be_opened(tried: Editor, uri: str) -> None:
    tried.open(uri, HAZARD)
    check_alive(tried)
    tried.close(uri)


@pytest.mark.parametrize(
    "text", ["\0", "\ud83d", "\ufeffimport torch", "x = (" * 500, "a" * 200_000, "\r\r\n\n\r"]
)
def test_any_text_can_be_opened(tried: Editor, text: str) -> None:
    uri = tried.open(
        "file:///c/any.py", "import torch\n" + text, version=tried.versions.get("file:///c/any.py", 0) + 1
    )
    assert isinstance(tried.diagnostics(uri), list)
    check_alive(tried)


def test_an_edit_outside_the_text_is_an_edit_at_its_end(tried: Editor) -> None:
    uri = tried.open("file:///c/outside.py", "import torch\n")
    far = {"line": 500, "character": 500}
    change = {"range": {"start": far, "end": far}, "text": HAZARD[len("import torch\n") :]}
    tried.notify(
        "textDocument/didChange", {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [change]}
    )
    tried.versions[uri] = 2
    assert tried.codes(uri) == [("GS101", 5)]


def test_requests_before_initialize_are_refused_and_notifications_passed_over() -> None:
    editor = Editor(initialize=False)
    assert refusal(editor, lambda: editor.request("textDocument/hover", {})) == NOT_INITIALIZED
    assert refusal(editor, lambda: editor.request("shutdown", None)) == NOT_INITIALIZED
    editor.open("file:///c/early.py", HAZARD)
    editor.initialize()
    assert editor.hover("file:///c/early.py", 0) is None
    assert editor.stop() == 0


def test_initialize_with_strange_parameters_is_refused_or_borne() -> None:
    editor = Editor(initialize=False)
    assert refusal(editor, lambda: editor.request("initialize", None)) == INVALID_PARAMS
    strange = {
        "capabilities": {"general": [], "textDocument": 5, "workspace": {"configuration": {}}},
        "workspaceFolders": [5],
    }
    assert editor.request("initialize", strange)["capabilities"]["positionEncoding"] == "utf-16"
    assert editor.stop() == 0


def test_after_shutdown_only_exit_is_heard() -> None:
    editor = Editor()
    editor.request("shutdown", None)
    assert refusal(editor, lambda: editor.request("shutdown", None)) == INVALID_REQUEST
    params = {"textDocument": {"uri": "a"}, "position": {"line": 0, "character": 0}}
    assert refusal(editor, lambda: editor.request("textDocument/hover", params)) == INVALID_REQUEST
    editor.notify("textDocument/didOpen", {})
    editor.notify("exit", None)
    assert editor.process.wait(30) == 0


def test_exit_without_shutdown_is_an_error() -> None:
    editor = Editor()
    editor.notify("exit", None)
    assert editor.process.wait(30) == 1


def test_a_client_that_goes_away_ends_the_server() -> None:
    editor = Editor()
    assert editor.process.stdin is not None
    editor.process.stdin.close()
    assert editor.process.wait(30) == 1


def refusal(editor: Editor, call: Any) -> int | None:
    """The code with which a call is refused."""
    with pytest.raises(Refused) as refused:
        call()
    code = refused.value.code
    assert isinstance(code, int)
    return code


def check_alive(editor: Editor) -> None:
    """The server still answers, and rightly."""
    uri = "file:///c/alive.py"
    editor.open(uri, HAZARD, version=editor.versions.get(uri, 0) + 1)
    assert editor.codes(uri) == [("GS101", 5)]
    assert json.dumps(editor.hover(uri, HAZARD.index("exp"))).startswith('"**`Tensor.exp')
