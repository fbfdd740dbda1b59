"""What the client can do, read once from its capabilities: optional fields are sent only to clients that know them."""

from __future__ import annotations

from dataclasses import dataclass

from pygls.capabilities import get_capability

from gradsight.lsp.convert import Encoding
from gradsight.lsp.wire_types import types


@dataclass(frozen=True, slots=True)
class Client:
    """Abilities of the client; the defaults are those of one that can do the least."""

    encoding: Encoding = "utf-16"
    pulls_diagnostics: bool = False
    takes_related_documents: bool = False
    refreshes_diagnostics: bool = False
    takes_versions: bool = False
    takes_related_information: bool = False
    takes_code_description: bool = False
    takes_data: bool = False
    tags: frozenset[types.DiagnosticTag] = frozenset()
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


def read_client(capabilities: types.ClientCapabilities, encoding: str) -> Client:
    """The client that has these capabilities."""

    def has(path: str) -> bool:
        return bool(get_capability(capabilities, path, False))

    publish = "text_document.publish_diagnostics"
    tags = get_capability(capabilities, f"{publish}.tag_support", None)
    formats = get_capability(capabilities, "text_document.hover.content_format", None) or ()
    resolved = get_capability(capabilities, "text_document.code_action.resolve_support", None)
    pulls = get_capability(capabilities, "text_document.diagnostic", None)
    return Client(
        encoding=encoding if encoding in ("utf-8", "utf-32") else "utf-16",  # type: ignore[arg-type]
        pulls_diagnostics=pulls is not None,
        takes_related_documents=bool(pulls and pulls.related_document_support),
        refreshes_diagnostics=has("workspace.diagnostics.refresh_support"),
        takes_versions=has(f"{publish}.version_support"),
        takes_related_information=has(f"{publish}.related_information"),
        takes_code_description=has(f"{publish}.code_description_support"),
        takes_data=has(f"{publish}.data_support"),
        tags=frozenset(tags.value_set)
        if isinstance(tags, types.ClientDiagnosticsTagOptions)
        else frozenset(),
        reads_markdown=types.MarkupKind.Markdown in formats,
        takes_action_literals=has("text_document.code_action.code_action_literal_support"),
        resolves_edits=has("text_document.code_action.data_support")
        and "edit" in (resolved.properties if resolved else ()),
        knows_preferred=has("text_document.code_action.is_preferred_support"),
        takes_document_changes=has("workspace.workspace_edit.document_changes"),
        watches_files=has("workspace.did_change_watched_files.dynamic_registration"),
        answers_configuration=has("workspace.configuration"),
        registers_configuration=has("workspace.did_change_configuration.dynamic_registration"),
        refreshes_hints=has("workspace.inlay_hint.refresh_support"),
        refreshes_lenses=has("workspace.code_lens.refresh_support"),
        shows_progress=has("window.work_done_progress"),
    )
