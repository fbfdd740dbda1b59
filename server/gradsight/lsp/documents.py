"""Text documents: opened, edited, saved, closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradsight.lsp import diagnostics
from gradsight.lsp.convert import edit_of, path_of, uri_of
from gradsight.lsp.places import spot_of
from gradsight.lsp.wire_types import types
from gradsight.session.documents import Document

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer


def register(server: GradSightServer) -> None:
    """Takes the place of the text documents that pygls keeps: theirs split lines at other characters."""
    server.take_over(types.TEXT_DOCUMENT_DID_OPEN, did_open)
    server.take_over(types.TEXT_DOCUMENT_DID_CHANGE, did_change)
    server.take_over(types.TEXT_DOCUMENT_DID_CLOSE, did_close)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(did_save)
    server.feature("gradsight/text")(text)


def did_open(ls: GradSightServer, params: types.DidOpenTextDocumentParams) -> None:
    """A document appeared; one that is open already is opened anew.  What is not Python is none of our business."""
    item = params.text_document
    if item.language_id not in ("", "python") and not item.uri.endswith((".py", ".pyw")):
        return
    document = ls.session.open_document(item.uri, path_of(item.uri), item.version, item.text)
    ls.session.request(document, 0.0)


def did_change(ls: GradSightServer, params: types.DidChangeTextDocumentParams) -> None:
    """The text changed; changes come in order, each to the text that the one before it left."""
    document = ls.session.open.documents.get(params.text_document.uri)
    if document is None:
        return
    for change in params.content_changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            document.edit(edit_of(document.buffer, change, ls.client.encoding))
        else:
            document.replace_text(change.text)
    document.version = params.text_document.version
    ls.session.changed(document)


def did_save(ls: GradSightServer, params: types.DidSaveTextDocumentParams) -> None:
    """The text was written to disk; with it, files that we read may have changed."""
    document = ls.session.open.documents.get(params.text_document.uri)
    if document is not None:
        ls.session.saved(document)
    if not ls.client.watches_files:
        ls.session.poll_files()


def did_close(ls: GradSightServer, params: types.DidCloseTextDocumentParams) -> None:
    """The document is gone, and with it what was said about it."""
    document = ls.session.open.documents.get(params.text_document.uri)
    if document is not None:
        forget(ls, document, [document.key])


def forget(ls: GradSightServer, document: Document, shown: list[str]) -> None:
    """Close a document that was shown under these addresses; what others found in it stays."""
    elsewhere = ls.session.close(document)
    still = {uri_of(document.path)} if ls.session.findings_at(document.path) else set()
    diagnostics.clear(ls, [uri for uri in shown if uri not in still])
    if not ls.client.pulls_diagnostics:
        for path in elsewhere | ({document.path} if still else set()):
            diagnostics.show_elsewhere(ls, path)


def text(ls: GradSightServer, params: Any) -> str | None:
    """The text that the server has of an open document, for whoever has reason to doubt it."""
    spot = spot_of(ls.session, str(getattr(params, "uri", "")))
    return spot.buffer.text if spot is not None else None
