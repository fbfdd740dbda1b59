"""What the client can do, read once from its capabilities: optional fields are sent only to clients that know them.

Capabilities are read as they came, without building the protocol's types for them: that would be most of the time from
the first message to its answer, and a client may say things there that nobody here asks about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gradsight.lsp.convert import Encoding

ENCODINGS: dict[object, Encoding] = {"utf-8": "utf-8", "utf-16": "utf-16", "utf-32": "utf-32"}
# What is said about a text changes while the text does not: a probe confirms it, a file it imports is edited.  These
# clients can pull, but would not hear of it: up to 0.11 Neovim, and Helix, take no refresh; Neovim 0.12 answers one by
# asking for the workspace, and passes over the files in the answer that are open.
DEAF_TO_REFRESH = frozenset({"Neovim", "helix"})


@dataclass(frozen=True, slots=True)
class Client:
    """Abilities of the client; the defaults are those of one that can do the least."""

    encoding: Encoding = "utf-16"
    pulls_diagnostics: bool = False
    refreshes_diagnostics: bool = False
    takes_versions: bool = False
    takes_related_information: bool = False
    takes_code_description: bool = False
    takes_data: bool = False
    tags: frozenset[int] = frozenset()
    reads_markdown: bool = False
    takes_action_literals: bool = False
    resolves_edits: bool = False
    knows_preferred: bool = False
    takes_document_changes: bool = False
    watches_files: bool = False
    answers_configuration: bool = False
    registers_configuration: bool = False
    refreshes_hints: bool = False
    refreshes_lenses: bool = False
    shows_progress: bool = False
    knows_notebooks: bool = False
    shows_pages: bool = False
    """It is our own: it shows pages and signs, and has findings in its hovers by itself."""


def read_client(capabilities: object, name: object = None, options: object = None) -> Client:
    """The client that has these capabilities, and calls itself by this name."""

    def find(path: str) -> Any:
        found: Any = capabilities
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        return found

    def has(path: str) -> bool:
        return bool(find(path))

    def entries(path: str) -> list[Any]:
        found = find(path)
        return found if isinstance(found, list) else []

    publish, action = "textDocument.publishDiagnostics", "textDocument.codeAction"
    offered = [ENCODINGS[name] for name in entries("general.positionEncodings") if name in ENCODINGS]
    return Client(
        encoding=offered[0] if offered else "utf-16",
        pulls_diagnostics=find("textDocument.diagnostic") is not None and name not in DEAF_TO_REFRESH,
        refreshes_diagnostics=has("workspace.diagnostics.refreshSupport"),
        takes_versions=has(f"{publish}.versionSupport"),
        takes_related_information=has(f"{publish}.relatedInformation"),
        takes_code_description=has(f"{publish}.codeDescriptionSupport"),
        takes_data=has(f"{publish}.dataSupport"),
        tags=frozenset(tag for tag in entries(f"{publish}.tagSupport.valueSet") if isinstance(tag, int)),
        reads_markdown="markdown" in entries("textDocument.hover.contentFormat"),
        takes_action_literals=has(f"{action}.codeActionLiteralSupport"),
        resolves_edits=has(f"{action}.dataSupport")
        and "edit" in entries(f"{action}.resolveSupport.properties"),
        knows_preferred=has(f"{action}.isPreferredSupport"),
        takes_document_changes=has("workspace.workspaceEdit.documentChanges"),
        watches_files=has("workspace.didChangeWatchedFiles.dynamicRegistration"),
        answers_configuration=has("workspace.configuration"),
        registers_configuration=has("workspace.didChangeConfiguration.dynamicRegistration"),
        refreshes_hints=has("workspace.inlayHint.refreshSupport"),
        refreshes_lenses=has("workspace.codeLens.refreshSupport"),
        shows_progress=has("window.workDoneProgress"),
        knows_notebooks=find("notebookDocument") is not None,
        shows_pages=_is_own(options),
    )


def _is_own(options: object) -> bool:
    own = options.get("client") if isinstance(options, Mapping) else None
    return isinstance(own, Mapping) and own.get("pages") is True
