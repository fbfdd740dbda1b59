"""The rules of the conversation: what is answered when, and what a message that cannot be understood gets.

pygls keeps handlers, requests and capabilities; here is what it leaves open: messages that are no messages, requests
before the beginning and after the end, cancellation that reaches the work, and an end that waits for nobody.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.protocol import LanguageServerProtocol, lsp_method

from gradsight.lsp.frames import frame
from gradsight.lsp.wire_types import types

log = logging.getLogger(__name__)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
NOT_INITIALIZED = -32002


class Conversation(LanguageServerProtocol):
    """One client, from `initialize` to `exit`."""

    def __init__(self, server: Any, converter: Any) -> None:
        self.is_initialized = False
        self.progress_token: int | str | None = None
        """Where the client wants to hear how far the command is that starts just now."""
        self.send: Callable[[bytes], None] | None = None
        self.on_exit: Callable[[int], None] = lambda code: None
        self.on_initialize: Callable[[dict[str, Any]], dict[str, Any]] = lambda params: {}
        super().__init__(server, converter)

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
        try:
            message = self.structure_message(data)
        except JsonRpcException as problem:
            if is_request:
                self._refuse(identity, INVALID_PARAMS, f"{method}: the parameters cannot be understood")
            else:
                log.warning("%s: the parameters cannot be understood: %s", method, problem)
            return
        context = contextvars.copy_context()
        if isinstance(identity, (str, int)):
            context.run(self._handle_request, identity, method, message.params)
        else:
            context.run(self._handle_notification, method, message.params)

    def _begin(self, identity: object, params: object) -> None:
        if not isinstance(params, dict) or identity is None:
            self._refuse(identity, INVALID_PARAMS, "initialize: the parameters cannot be understood")
            return
        self.is_initialized = True
        self._send_data({"jsonrpc": "2.0", "id": identity, "result": self.on_initialize(params)})

    def _receive_answer(self, data: dict[str, Any]) -> None:
        known = self._request_futures.get(data["id"]) if isinstance(data["id"], (str, int)) else None
        if known is None or known.done():
            # Nobody asked, or nobody waits any more: a shutdown cancels what was asked.
            self._request_futures.pop(data["id"] if known is not None else "", None)
            return
        try:
            message = self.structure_message(data)
        except JsonRpcException:
            future = self._request_futures.pop(data["id"])
            if not future.done():
                future.set_exception(JsonRpcInvalidParams("the answer cannot be understood"))
            return
        self._handle_response(data["id"], getattr(message, "result", None), getattr(message, "error", None))

    def _untimely(self, method: str) -> tuple[int, str] | None:
        """Why a call comes at the wrong time; None if it does not."""
        if method == types.EXIT:
            return None
        if self._shutdown:
            return INVALID_REQUEST, "the server was shut down"
        if method == types.INITIALIZE:
            return (INVALID_REQUEST, "already initialized") if self.is_initialized else None
        return None if self.is_initialized else (NOT_INITIALIZED, "initialize comes first")

    def _refuse(self, identity: object, code: int, message: str) -> None:
        if not isinstance(identity, (str, int)):
            identity = None
        self._send_data({"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": message}})

    def _send_data(self, data: Any) -> None:
        if not data or self.send is None:
            return
        if not isinstance(data, dict):
            data = self._converter.unstructure(data)
        self.send(frame(json.dumps(data, separators=(",", ":"), default=self._serialize_message).encode()))

    def _handle_cancel_notification(self, msg_id: str | int) -> None:
        future = self._request_futures.pop(msg_id, None)
        if future is not None:
            future.cancel()

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Any:  # type: ignore[override]
        """Runs a command inside the request's own task, so that cancelling the request cancels the command.

        Its arguments are handed over as they came.
        """
        handler = self.fm.commands.get(params.command)
        if handler is None:
            raise JsonRpcInvalidParams(f"no command {params.command!r}")
        arguments = list(params.arguments or ())
        try:
            # pygls wraps a coroutine that wants the server; the wrapper itself takes anything.
            if inspect.iscoroutinefunction(handler) and hasattr(handler, "func"):
                inspect.signature(handler.func).bind(self._server, *arguments)
            else:
                inspect.signature(handler).bind(*arguments)
        except TypeError as problem:
            raise JsonRpcInvalidParams(f"{params.command}: {problem}") from problem
        self.progress_token = params.work_done_token
        result = handler(*arguments)
        return await result if inspect.isawaitable(result) else result

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> Iterator[Any]:  # type: ignore[override]
        """Ends all work in flight; from now on only `exit` is heard."""
        self._shutdown = True
        for msg_id, future in list(self._request_futures.items()):
            if msg_id != self.msg_id and not future.done():
                future.cancel()
        if (handler := self.fm.features.get(types.SHUTDOWN)) is not None:
            yield handler, args, None

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> None:  # type: ignore[override]
        """Ends the process: 0 after a shutdown, 1 without."""
        self.on_exit(0 if self._shutdown else 1)


def settle(future: asyncio.Future[Any]) -> None:
    """For work that nobody awaits: its failure is logged, its cancellation and a client's refusal are no news."""
    if future.cancelled():
        return
    problem = future.exception()
    if isinstance(problem, JsonRpcException):
        log.info("the client refused: %s", problem)
    elif problem is not None:
        log.error("work in the background failed", exc_info=problem)
