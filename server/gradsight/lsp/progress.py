"""Work-done progress: under the token that the client sent with its request, or under one of our own."""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING

from gradsight.lsp.wire_types import types

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer


class Reporter:
    """Tells the client how far a piece of work is, if the client wants to know."""

    def __init__(self, server: GradSightServer, token: int | str | None) -> None:
        self._server = server
        self._shown = server.work_done_progress
        self.token = token

    async def begin(self, title: str) -> None:
        """Start to tell; a client that sent no token is asked to make room for one."""
        if self.token is None and self._server.client.shows_progress:
            token = f"gradsight-{uuid.uuid4().hex[:12]}"
            with contextlib.suppress(Exception):
                await self._server.window_work_done_progress_create_async(
                    types.WorkDoneProgressCreateParams(token)
                )
                self.token = token
        if self.token is not None:
            self._shown.begin(self.token, types.WorkDoneProgressBegin(title, cancellable=True))

    def report(self, message: str) -> None:
        """How far it is."""
        if self.token is not None:
            self._shown.report(self.token, types.WorkDoneProgressReport(cancellable=True, message=message))

    def end(self, message: str) -> None:
        """It is over."""
        if self.token is not None:
            self._shown.end(self.token, types.WorkDoneProgressEnd(message=message))
            self._shown.tokens.pop(self.token, None)
