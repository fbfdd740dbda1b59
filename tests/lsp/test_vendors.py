"""What the server takes from pygls and lsprotocol: from pygls its public parts alone, each tried here by itself.

Checked on pygls 2.1.1 and lsprotocol 2025.0.0: with another release these tests say which part is not what it was.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import subprocess
import sys
from concurrent.futures import Future
from importlib.metadata import version
from typing import Any

import pytest
from pygls.lsp.server import LanguageServer
from pygls.progress import Progress
from pygls.protocol import LanguageServerProtocol, lsp_method

from gradsight.lsp.server import GradSightServer
from gradsight.lsp.wire_types import types
from gradsight.session.session import EditorSession
from tests.house.tree import ROOT

LSP = ROOT / "server" / "gradsight" / "lsp"
CHECKED_ON = {"pygls": "2.1.1", "lsprotocol": "2025.0.0"}


class Written:
    """A writer that keeps what it gets."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def write(self, data: bytes) -> None:
        self.messages.append(json.loads(data))

    def close(self) -> None: ...


def talk(server: LanguageServer, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """What a server of pygls writes when it is handed these messages."""
    written = Written()

    async def converse() -> None:
        server.protocol.set_writer(written, include_headers=False)
        for message in messages:
            data = {"jsonrpc": "2.0", "params": None, **message}
            server.protocol.handle_message(server.protocol.structure_message(data))
        for _ in range(20):
            await asyncio.sleep(0)

    asyncio.run(converse())
    return written.messages


def test_the_versions_are_those_that_were_checked() -> None:
    assert {name: version(name) for name in CHECKED_ON} == CHECKED_ON


def test_nothing_private_of_pygls_is_used() -> None:
    known = [LanguageServerProtocol, LanguageServer, Progress]
    instances: list[object] = [server := LanguageServer("x", "1"), server.protocol, server.work_done_progress]
    private = {
        name
        for each in [*known, *instances]
        for name in [*dir(each), *getattr(each, "__dict__", {})]
        if name.startswith("_") and not name.startswith("__")
    }
    assert {"_send_data", "_request_futures", "_converter", "_shutdown"} <= private
    used = {
        (path.name, node.attr if isinstance(node, ast.Attribute) else node.name)
        for path in sorted(LSP.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.Attribute, ast.FunctionDef))
    }
    # Objects of our own that hold the server under this name.
    own = {("progress.py", "_server"), ("settings.py", "_server")}
    assert {(file, name) for file, name in used if name in private} - own == set()


def test_a_writer_without_headers_gets_whole_bodies() -> None:
    server = LanguageServer("x", "1")
    [sent] = talk(server, {"id": 1, "method": "nothing/known"})
    assert (sent["id"], sent["error"]["code"]) == (1, -32601)


def test_a_message_is_read_and_handed_over_by_two_public_calls() -> None:
    server = LanguageServer("x", "1")

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover:
        return types.Hover(types.MarkupContent(types.MarkupKind.PlainText, params.text_document.uri))

    place = {"textDocument": {"uri": "file:///a"}, "position": {"line": 0, "character": 0}}
    [sent] = talk(server, {"id": 1, "method": "textDocument/hover", "params": place})
    assert sent["result"] == {"contents": {"kind": "plaintext", "value": "file:///a"}}


def test_a_built_in_feature_gives_way_to_one_that_is_added_later() -> None:
    server, seen = LanguageServer("x", "1"), []
    server.protocol.fm.add_builtin_feature(types.TEXT_DOCUMENT_DID_OPEN, seen.append)
    item = {"uri": "file:///a", "languageId": "python", "version": 1, "text": ""}
    opened = {"method": "textDocument/didOpen", "params": {"textDocument": item}}
    assert talk(server, opened) == []
    assert [params.text_document.uri for params in seen] == ["file:///a"]


def test_a_method_of_the_protocol_class_handles_what_it_is_marked_for() -> None:
    class Own(LanguageServerProtocol):
        @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
        async def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Any:  # type: ignore[override]
            return [params.command, *(params.arguments or ())]

    server = LanguageServer("x", "1", protocol_cls=Own)
    asked = {"id": 1, "method": "workspace/executeCommand", "params": {"command": "c", "arguments": [2]}}
    assert talk(server, asked)[0]["result"] == ["c", 2]


def test_a_shutdown_cancels_what_is_under_way_and_can_be_continued_from() -> None:
    server = LanguageServer("x", "1")
    assert inspect.isgeneratorfunction(type(server.protocol).lsp_shutdown)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> None:
        await asyncio.sleep(600)

    place = {"textDocument": {"uri": "file:///a"}, "position": {"line": 0, "character": 0}}
    waiting = {"id": 1, "method": "textDocument/hover", "params": place}
    sent = {each["id"]: each for each in talk(server, waiting, {"id": 2, "method": "shutdown"})}
    assert sent[1]["error"]["code"] == -32800
    assert sent[2]["result"] is None


def test_a_notification_to_cancel_reaches_the_task_of_a_request() -> None:
    server = LanguageServer("x", "1")

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> None:
        await asyncio.sleep(600)

    place = {"textDocument": {"uri": "file:///a"}, "position": {"line": 0, "character": 0}}
    waiting = {"id": 1, "method": "textDocument/hover", "params": place}
    [sent] = talk(server, waiting, {"method": "$/cancelRequest", "params": {"id": 1}})
    assert sent["error"]["code"] == -32800


def test_a_question_to_the_client_goes_through_one_public_method_with_an_id_of_ours() -> None:
    asked: list[Future[Any]] = []

    class Own(LanguageServerProtocol):
        def send_request(
            self, method: str, params: Any = None, callback: Any = None, msg_id: Any = None
        ) -> Any:
            asked.append(super().send_request(method, params, callback, "ours"))
            return asked[-1]

    async def converse() -> None:
        server, written = LanguageServer("x", "1", protocol_cls=Own), Written()
        server.protocol.set_writer(written, include_headers=False)
        waiting = asyncio.ensure_future(server.workspace_configuration_async(types.ConfigurationParams([])))
        await asyncio.sleep(0)
        assert [each["id"] for each in written.messages] == ["ours"]
        answer = {"jsonrpc": "2.0", "id": "ours", "result": [1]}
        server.protocol.handle_message(server.protocol.structure_message(answer))
        assert list(await waiting) == [1]

    asyncio.run(converse())
    assert len(asked) == 1


def test_progress_is_told_under_a_token_of_the_clients_and_forgotten() -> None:
    server, written = LanguageServer("x", "1"), Written()
    server.protocol.set_writer(written, include_headers=False)
    server.work_done_progress.begin("t", types.WorkDoneProgressBegin("title", cancellable=True))
    server.work_done_progress.end("t", types.WorkDoneProgressEnd(message="done"))
    assert [each["params"]["value"]["kind"] for each in written.messages] == ["begin", "end"]
    assert server.work_done_progress.tokens.pop("t") is not None


@pytest.mark.parametrize("answer", [{"result": 7}, {"error": {"code": "x"}}])
def test_an_answer_that_cannot_be_understood_ends_the_question(answer: dict[str, Any]) -> None:
    async def converse() -> None:
        server = GradSightServer(EditorSession())
        waiting = asyncio.ensure_future(server.workspace_configuration_async(types.ConfigurationParams([])))
        await asyncio.sleep(0)
        [identity] = server.protocol.asked
        server.protocol.receive(json.dumps({"jsonrpc": "2.0", "id": identity, **answer}).encode())
        with pytest.raises(Exception, match="cannot be understood"):
            await waiting
        assert not server.protocol.asked

    asyncio.run(converse())


def test_a_late_answer_to_a_question_that_nobody_waits_for_is_no_fault() -> None:
    async def converse() -> None:
        server = GradSightServer(EditorSession())
        waiting = asyncio.ensure_future(server.workspace_configuration_async(types.ConfigurationParams([])))
        await asyncio.sleep(0)
        [identity] = server.protocol.asked
        waiting.cancel()
        await asyncio.sleep(0)
        server.protocol.receive(json.dumps({"jsonrpc": "2.0", "id": identity, "result": []}).encode())

    asyncio.run(converse())


def test_lsprotocol_declares_its_classes_by_a_bare_define_and_resolves_them_once() -> None:
    """The two private parts that `wire_types` relies on; everything else of it is attrs and public."""
    import attrs
    from lsprotocol import _hooks

    assert _hooks._resolved_forward_references is True
    assert inspect.getsource(_hooks._resolve_forward_references).count("_resolved_forward_references") == 3
    bare = [cls for cls in types.ALL_TYPES_MAP.values() if isinstance(cls, type) and attrs.has(cls)]
    assert len(bare) > 500


FIRST = """
import lsprotocol.types as theirs
from gradsight.lsp.server import GradSightServer
from gradsight.lsp.wire_types import types
assert types is theirs
GradSightServer()
print(types.Position(1, 2))
"""


def test_a_server_works_where_somebody_imported_lsprotocol_before() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1:2\n"), done.stderr
