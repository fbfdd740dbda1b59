"""The server: one session, one client, and the features that each module of this package adds."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from pygls.exceptions import JsonRpcInternalError, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from gradsight import __version__
from gradsight.lsp import (
    actions,
    diagnostics,
    documents,
    hints,
    hover,
    initialize,
    lenses,
    notebooks,
    probing,
    queries,
    settings,
    trail,
    watching,
)
from gradsight.lsp.client import Client
from gradsight.lsp.convert import path_of
from gradsight.lsp.fix_counts import FixCounts
from gradsight.lsp.protocol import EditorConversation, settle
from gradsight.lsp.wire_types import types
from gradsight.session.documents import Document
from gradsight.session.session import EditorSession

if TYPE_CHECKING:
    from gradsight.model.finding import Finding

log = logging.getLogger(__name__)
Handler = Callable[..., Any]
FEATURES = (documents, notebooks, hover, actions, hints, lenses, settings, watching, probing, queries, trail)


ARGUMENT_KINDS = {"str": str, "int": int}
"""What an argument of a command can be checked for, by the annotation of its handler."""


class GradSightServer(LanguageServer):
    """What pygls calls a language server, with a session behind it."""

    protocol: EditorConversation

    def __init__(self, session: EditorSession | None = None) -> None:
        super().__init__(
            "gradsight",
            __version__,
            protocol_cls=EditorConversation,
        )
        self.session = session if session is not None else EditorSession()
        self.client = Client()
        self.choices = settings.Choices(self)
        self.commands: dict[str, Handler] = {}
        """What a client can have done, by name."""
        self.progress_token: int | str | None = None
        """Where the client wants to hear how far the command is that starts just now."""
        self.lens_commands: list[lenses.LensCommand] = []
        """Commands that are offered above functions; whoever can run something adds one."""
        self.published: set[str] = set()
        """Addresses whose diagnostics were not empty when they were last published, or when the client asked for them."""
        self.progress_shown: int | str | None = None
        """The token under which the newest probe tells how far it is."""
        self.session.on_report = self._on_report
        self.session.on_outdated = self.refresh
        self.session.on_complaint = self.tell
        self.fix_counts = FixCounts()
        self._tasks: set[asyncio.Future[Any]] = set()
        self._refresh_due = False
        for feature in FEATURES:
            feature.register(self)
        self.protocol.on_initialize = self._begin
        self.protocol.on_command = self._execute

    def add_command(self, name: str, handler: Handler) -> None:
        """Offer something to be done."""
        self.commands[name] = handler

    def take_over(self, method: str, handler: Handler) -> None:
        """Handle what pygls would handle in its own way."""
        self.protocol.fm.add_builtin_feature(method, partial(handler, self))

    async def _execute(self, params: types.ExecuteCommandParams) -> Any:
        """Have a command done; its arguments are handed over as they came."""
        handler = self.commands.get(params.command)
        if handler is None:
            raise JsonRpcInvalidParams(f"no command {params.command!r}")
        arguments = list(params.arguments or ())
        signature = inspect.signature(handler)
        try:
            bound = signature.bind(self, *arguments)
        except TypeError as problem:
            raise JsonRpcInvalidParams(f"{params.command}: {problem}") from problem
        for name, value in bound.arguments.items():
            kind = ARGUMENT_KINDS.get(str(signature.parameters[name].annotation))
            if kind is not None and not isinstance(value, kind):
                raise JsonRpcInvalidParams(f"{params.command}: {name} must be of type {kind.__name__}")
        self.progress_token = params.work_done_token
        result = handler(self, *arguments)
        return await result if inspect.isawaitable(result) else result

    def _begin(self, params: dict[str, Any]) -> dict[str, Any]:
        result = initialize.begin(self, params)
        if self.client.pulls_diagnostics:
            diagnostics.register(self)
        # The answer goes out first.
        loop = asyncio.get_running_loop()
        loop.call_soon(self.choices.begin)
        loop.call_soon(self.session.warm_up)
        return result

    def tell(self, text: str) -> None:
        """Say something to the user, once, in a line."""
        self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"GradSight: {text}"))

    def in_background(self, work: Any) -> None:
        """Have a coroutine run without anybody waiting for it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(settle)

    def refresh(self) -> None:
        """Ask the client to ask again, once for all that changes in this moment."""
        if not self._refresh_due:
            self._refresh_due = True
            asyncio.get_running_loop().call_soon(self._refresh)

    def _refresh(self) -> None:
        self._refresh_due = False
        if self.client.pulls_diagnostics and self.client.refreshes_diagnostics:
            self.in_background(self.workspace_diagnostic_refresh_async(None))
        if self.client.refreshes_hints and self.choices.common.inlay_hints:
            self.in_background(self.workspace_inlay_hint_refresh_async(None))

    def redraw(self) -> None:
        """Have hints and lenses asked for again, those that were switched off included."""
        if self.client.refreshes_hints:
            self.in_background(self.workspace_inlay_hint_refresh_async(None))
        if self.client.refreshes_lenses:
            self.in_background(self.workspace_code_lens_refresh_async(None))

    async def other_files(self) -> AsyncIterator[tuple[str, tuple[Finding, ...]]]:
        """Files that are not open, with what there is to say about them: what open documents found there, and the
        whole workspace where the user wants it."""
        paths = {
            finding.path
            for document in self.session.open.documents.values()
            for finding in document.findings
            if self.session.open.at_path(finding.path) is None
        }
        for path in sorted(paths):
            yield path, self.session.findings_at(path)
        folders = [
            path_of(uri) for uri, options in self.choices.folders.items() if options.scope == "workspace"
        ]
        async for path, findings in self.session.scanner.scan(folders):
            if path not in paths:
                yield path, findings

    def _on_report(self, document: Document, elsewhere: set[str]) -> None:
        diagnostics.show(self, document, elsewhere)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """A fault of ours is logged; telling the client by messages could fail again, and again."""
        if isinstance(error, JsonRpcInternalError):
            log.error("%s", error)
