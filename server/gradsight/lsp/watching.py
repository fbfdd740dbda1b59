"""Files that change outside the editor: the client tells, or we look ourselves now and then."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gradsight.lsp.convert import path_of
from gradsight.lsp.wire_types import types

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer

WATCHED = ("**/*.py", "**/pyproject.toml")
SECONDS_BETWEEN_LOOKS = 2.0


def register(server: GradSightServer) -> None:
    """Hear of changed files."""
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(did_change_watched_files)


def registration() -> types.Registration:
    """Asks the client to watch Python files and project settings."""
    options = types.DidChangeWatchedFilesRegistrationOptions(
        [types.FileSystemWatcher(glob_pattern=pattern) for pattern in WATCHED]
    )
    return types.Registration("gradsight-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)


def did_change_watched_files(ls: GradSightServer, params: types.DidChangeWatchedFilesParams) -> None:
    """Files changed, came or went."""
    ls.session.files_changed([path_of(change.uri) for change in params.changes])


async def look_now_and_then(ls: GradSightServer) -> None:
    """For clients that do not watch: compare the few files that were read with what lies on disk."""
    while True:
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
        ls.session.poll_files()
