"""The first question and its answer: what the client is, what the server can do for it, and where the work is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gradsight.lsp.client import Client, read_client

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer

ACTION_KINDS = ("quickfix", "refactor.rewrite.gradsight", "source.fixAll.gradsight")
INCREMENTAL = 2


def begin(server: GradSightServer, params: Mapping[str, Any]) -> dict[str, Any]:
    """Take up the conversation; the result of `initialize`, ready to be sent."""
    client = params.get("clientInfo")
    name = client.get("name") if isinstance(client, Mapping) else None
    options = params.get("initializationOptions")
    server.client = read_client(params.get("capabilities"), name, options)
    server.session.is_pulled = server.client.pulls_diagnostics
    server.choices.folders_at_start = folders_of(params)
    server.choices.sent_at_start = params.get("initializationOptions")
    return {
        "capabilities": capabilities(server.client, sorted(server.commands)),
        "serverInfo": {"name": server.name, "version": server.version},
    }


def capabilities(client: Client, commands: list[str]) -> dict[str, Any]:
    """What the server offers to this client."""
    offered: dict[str, Any] = {
        "positionEncoding": client.encoding,
        "textDocumentSync": {
            "openClose": True,
            "change": INCREMENTAL,
            "save": {"includeText": False},
        },
        "hoverProvider": True,
        "documentHighlightProvider": True,
        "codeActionProvider": {"codeActionKinds": list(ACTION_KINDS), "resolveProvider": True},
        "codeLensProvider": {"resolveProvider": False},
        "inlayHintProvider": {"resolveProvider": False},
        "executeCommandProvider": {"commands": commands},
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
    }
    if client.pulls_diagnostics:
        offered["diagnosticProvider"] = {
            "identifier": "gradsight",
            "interFileDependencies": True,
            "workspaceDiagnostics": True,
        }
    if client.knows_notebooks:
        # All cells, also those without code: a cell is named by its number among all of them.
        offered["notebookDocumentSync"] = {
            "notebookSelector": [{"notebook": "*"}],
            "save": True,
        }
    return offered


def folders_of(params: Mapping[str, Any]) -> list[str]:
    """The addresses of the folders that the client works in."""
    folders = params.get("workspaceFolders")
    if isinstance(folders, list) and folders:
        return [str(folder["uri"]) for folder in folders if isinstance(folder, Mapping) and "uri" in folder]
    root = params.get("rootUri")
    return [root] if isinstance(root, str) else []
