"""What the user chose in the editor: sent with `initialize`, asked for per folder, or pushed when it changes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gradsight.lsp import watching
from gradsight.lsp.convert import path_of
from gradsight.lsp.wire_types import types
from gradsight.session.options import FolderOptions, Options, options_from

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer

SECTION = "gradsight"


class Choices:
    """Options for everything, and for each folder that has its own."""

    def __init__(self, server: GradSightServer) -> None:
        self._server = server
        self.sent_at_start: object = None
        self.folders_at_start: list[str] = []
        self.common = Options()
        self.folders: dict[str, Options] = {}
        """By address of the folder; the common options until the client told more."""

    def begin(self) -> None:
        """Read what came with `initialize`."""
        self.common = self._read(self.sent_at_start)
        self.folders = dict.fromkeys(self.folders_at_start, self.common)
        self._push()

    async def ask(self) -> None:
        """Ask the client for the options of every folder; where nothing changed nothing is done again."""
        if not self._server.client.answers_configuration:
            return
        folders = list(self.folders)
        items = [types.ConfigurationItem(section=SECTION)] + [
            types.ConfigurationItem(scope_uri=folder, section=SECTION) for folder in folders
        ]
        try:
            answers = await self._server.workspace_configuration_async(types.ConfigurationParams(items))
        except asyncio.CancelledError:
            # The client went away without an answer: the server is about to end.
            return
        before = (self.common, dict(self.folders))
        told = [self._read(answer) if answer is not None else self.common for answer in answers]
        if len(told) == len(items):
            self.common = told[0]
            self.folders.update(
                {folder: one for folder, one in zip(folders, told[1:]) if folder in self.folders}
            )
        self._apply(before)

    def take(self, pushed: object) -> None:
        """Take options that the client pushed, for everything."""
        before = (self.common, dict(self.folders))
        self.common = self._read(pushed)
        self.folders = dict.fromkeys(self.folders, self.common)
        self._apply(before)

    def change_folders(self, added: list[str], removed: list[str]) -> None:
        """Folders came to the workspace and left it."""
        for folder in removed:
            self.folders.pop(folder, None)
        self.folders.update(dict.fromkeys(added, self.common))
        self._push()

    def _push(self) -> None:
        """The session knows what holds where, and never has to ask."""
        folders = {path_of(folder): options for folder, options in self.folders.items()}
        self._server.session.use_options(FolderOptions(self.common, folders))

    def _apply(self, before: tuple[Options, dict[str, Options]]) -> None:
        if before != (self.common, self.folders):
            self._push()
            self._server.session.outdate(self._server.session.open.documents.values())
            self._server.redraw()

    def _read(self, sent: object) -> Options:
        """Options out of what was sent: the section itself, or a table that holds it."""
        if isinstance(sent, Mapping) and isinstance(sent.get(SECTION), Mapping):
            sent = sent[SECTION]
        options, complaints = options_from(_plain(sent))
        for complaint in complaints:
            self._server.session.complain(complaint)
        return options


def register(server: GradSightServer) -> None:
    """Hear of changed settings and folders."""
    server.feature(types.INITIALIZED)(initialized)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(did_change_configuration)
    server.take_over(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, did_change_folders)


async def initialized(ls: GradSightServer, params: types.InitializedParams) -> None:
    """The client is ready: have it tell of changes, and of its settings."""
    registrations = []
    if ls.client.registers_configuration:
        options = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
        registrations.append(
            types.Registration("gradsight-settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, options)
        )
    if ls.client.watches_files:
        registrations.append(watching.registration())
    if registrations:
        ls.in_background(ls.client_register_capability_async(types.RegistrationParams(registrations)))
    if not ls.client.watches_files:
        ls.in_background(watching.look_now_and_then(ls))
    await ls.choices.ask()


async def did_change_configuration(ls: GradSightServer, params: types.DidChangeConfigurationParams) -> None:
    """Settings changed: the client says what they are now, or wants to be asked."""
    if ls.client.answers_configuration:
        await ls.choices.ask()
    elif params.settings is not None:
        ls.choices.take(params.settings)


async def did_change_folders(ls: GradSightServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """The workspace has other folders now."""
    event = params.event
    ls.choices.change_folders(
        [folder.uri for folder in event.added], [folder.uri for folder in event.removed]
    )
    await ls.choices.ask()


def _plain(value: Any) -> Any:
    """What pygls turned into named tuples is a table again."""
    if hasattr(value, "_asdict"):
        return {key: _plain(each) for key, each in value._asdict().items()}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value
