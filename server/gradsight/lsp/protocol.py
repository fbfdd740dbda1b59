"""The rules of the conversation: what is answered when, and what a message that cannot be understood gets.

pygls keeps handlers and requests; here is what it leaves open: messages that are no messages, requests before the
beginning and after the end, cancellation that reaches the work, and an end that waits for nobody.  It is extended where
it means to be: by a class of protocol with methods of its own, by a writer, and by what its public methods take.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from typing import Any

from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol, lsp_method

from gradsight.lsp.wire_types import types

log = logging.getLogger(__name__)

VERSION = "2.0"
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
NOT_INITIALIZED = -32002


class Nobody:
    """Takes what is sent while nobody listens."""

    def write(self, data: bytes) -> None:
        """Forget it."""

    def close(self) -> None:
        """Nothing is open."""


class EditorConversation(LanguageServerProtocol):
    """One client, from `initialize` to `exit`."""

    def __init__(self, server: Any, converter: Any) -> None:
        self.is_initialized = False
        self.is_shut_down = False
        self.asked: dict[str | int, Future[Any]] = {}
        """Our own questions that wait for the client's answer."""
        self.on_exit: Callable[[int], None] = lambda code: None
        self.on_initialize: Callable[[dict[str, Any]], dict[str, Any]] = lambda params: {}
        self.on_command: Callable[[types.ExecuteCommandParams], Awaitable[Any]]
        super().__init__(server, converter)
        self.set_writer(Nobody(), include_headers=False)

    def receive(self, body: bytes) -> None:
        """Handle one message; whatever it is, it gets its answer and the conversation goes on."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as problem:
            log.warning("a message is not JSON: %s", problem)
            self._refuse(None, PARSE_ERROR, f"not JSON: {problem}")
            return
        if not isinstance(data, dict) or data.get("jsonrpc") != "2.0":
            identity = data.get("id") if isinstance(data, dict) else None
            self._refuse(identity, INVALID_REQUEST, "not a JSON-RPC 2.0 message")
            return
        if "method" in data:
            self._receive_call(data)
        elif "id" in data and ("result" in data or "error" in data):
            self._receive_answer(data)
        else:
            self._refuse(data.get("id"), INVALID_REQUEST, "neither a call nor an answer")

    def _receive_call(self, data: dict[str, Any]) -> None:
        method, identity = data["method"], data.get("id")
        is_request = "id" in data
        if not isinstance(method, str) or (is_request and not isinstance(identity, (str, int))):
            self._refuse(identity, INVALID_REQUEST, "the method or the id has the wrong type")
            return
        refusal = self._untimely(method)
        if refusal is not None:
            if is_request:
                self._refuse(identity, *refusal)
            return
        if method == types.INITIALIZE:
            self._begin(identity, data.get("params"))
            return
        data.setdefault("params", None)
        if method == types.CANCEL_REQUEST and not _names_a_request(data["params"]):
            log.warning("%s: names no request", method)
            return
        try:
            message = self.structure_message(data)
        except JsonRpcException as problem:
            if is_request:
                self._refuse(identity, INVALID_PARAMS, f"{method}: the parameters cannot be understood")
            else:
                log.warning("%s: the parameters cannot be understood: %s", method, problem)
            return
        self.handle_message(message)

    def _begin(self, identity: object, params: object) -> None:
        if not isinstance(params, dict) or identity is None:
            self._refuse(identity, INVALID_PARAMS, "initialize: the parameters cannot be understood")
            return
        self.is_initialized = True
        self._reply({"id": identity, "result": self.on_initialize(params)})

    def _receive_answer(self, data: dict[str, Any]) -> None:
        identity = data["id"]
        if not isinstance(identity, (str, int)) or identity not in self.asked:
            return
        try:
            message = self.structure_message(data)
        except JsonRpcException:
            problem = types.ResponseError(INVALID_PARAMS, "the answer cannot be understood")
            message = types.ResponseErrorMessage(id=identity, error=problem)
        # Perhaps nobody waits any more.
        with contextlib.suppress(InvalidStateError):
            self.handle_message(message)

    def send_request(
        self,
        method: str,
        params: Any | None = None,
        callback: Callable[[Any], None] | None = None,
        msg_id: str | int | None = None,
    ) -> Future[Any]:
        """Ask the client something."""
        identity = msg_id if msg_id is not None else str(uuid.uuid4())
        future = super().send_request(method, params, callback, identity)
        self.asked[identity] = future
        future.add_done_callback(lambda done: self.asked.pop(identity, None))
        return future

    def _untimely(self, method: str) -> tuple[int, str] | None:
        """Why a call comes at the wrong time; None if it does not."""
        if method == types.EXIT:
            return None
        if self.is_shut_down:
            return INVALID_REQUEST, "the server was shut down"
        if method == types.INITIALIZE:
            return (INVALID_REQUEST, "already initialized") if self.is_initialized else None
        return None if self.is_initialized else (NOT_INITIALIZED, "initialize comes first")

    def _refuse(self, identity: object, code: int, message: str) -> None:
        if not isinstance(identity, (str, int)):
            identity = None
        self._reply({"id": identity, "error": {"code": code, "message": message}})

    def _reply(self, answer: dict[str, Any]) -> None:
        """Answer in plain data, without the types of the protocol."""
        if self.writer is not None:
            self.writer.write(json.dumps({"jsonrpc": VERSION, **answer}, separators=(",", ":")).encode())

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Any:  # type: ignore[override]
        """Runs a command inside the request's own task, so that cancelling the request cancels the command."""
        return await self.on_command(params)

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> Iterator[Any]:  # type: ignore[override]
        """Ends all work in flight; from now on only `exit` is heard."""
        self.is_shut_down = True
        return (yield from super().lsp_shutdown(*args))

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> None:  # type: ignore[override]
        """Ends the process: 0 after a shutdown, 1 without."""
        self.on_exit(0 if self.is_shut_down else 1)


def _names_a_request(params: object) -> bool:
    return isinstance(params, dict) and isinstance(params.get("id"), (str, int))


def settle(future: asyncio.Future[Any]) -> None:
    """For work that nobody awaits: its failure is logged, its cancellation and a client's refusal are no news."""
    if future.cancelled():
        return
    problem = future.exception()
    if isinstance(problem, JsonRpcException):
        log.info("the client refused: %s", problem)
    elif problem is not None:
        log.error("work in the background failed", exc_info=problem)
