"""Notebooks: the code cells, joined in order, are one module; each cell shows what is found in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.lsp import diagnostics
from gradsight.lsp.convert import edit_of, path_of
from gradsight.lsp.documents import forget
from gradsight.lsp.wire_types import types
from gradsight.session.buffer import Buffer
from gradsight.session.documents import Notebook, OpenCell

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer


def register(server: GradSightServer) -> None:
    """Takes the place of the notebooks that pygls keeps."""
    server.take_over(types.NOTEBOOK_DOCUMENT_DID_OPEN, did_open)
    server.take_over(types.NOTEBOOK_DOCUMENT_DID_CHANGE, did_change)
    server.take_over(types.NOTEBOOK_DOCUMENT_DID_CLOSE, did_close)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)(did_save)


def did_open(ls: GradSightServer, params: types.DidOpenNotebookDocumentParams) -> None:
    """A notebook appeared, with its cells."""
    shown = params.notebook_document
    notebook = ls.session.open_notebook(shown.uri, path_of(shown.uri), shown.version)
    texts = {item.uri: item for item in params.cell_text_documents}
    notebook.cells = [_open_cell(cell, texts) for cell in shown.cells]
    _index_cells(ls, notebook)
    notebook.rearranged()
    ls.session.request(notebook, 0.0)


def did_change(ls: GradSightServer, params: types.DidChangeNotebookDocumentParams) -> None:
    """Cells came, went, moved, or changed their text."""
    notebook = ls.session.open.documents.get(params.notebook_document.uri)
    if not isinstance(notebook, Notebook):
        return
    notebook.version = params.notebook_document.version
    changes = params.change.cells
    if changes is None:
        return
    if changes.structure is not None:
        _restructure(ls, notebook, changes.structure)
    was_run = False
    for data in changes.data or []:
        cell = notebook.cell(data.document)
        if cell is not None and cell.was_run != _was_run(data):
            cell.was_run = not cell.was_run
            was_run = True
        if cell is not None and cell.is_code != (data.kind == types.NotebookCellKind.Code):
            cell.is_code = not cell.is_code
            notebook.rearranged()
    for content in changes.text_content or []:
        cell = notebook.cell(content.document.uri)
        if cell is None:
            continue
        for change in content.changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                notebook.edit_cell(cell, edit_of(cell.buffer, change, ls.client.encoding))
            else:
                notebook.reset_cell(cell, change.text)
        cell.version = content.document.version
    ls.session.changed(notebook)
    if was_run and notebook.report is not None:
        diagnostics.show(ls, notebook, set())
        ls.refresh()


def did_save(ls: GradSightServer, params: types.DidSaveNotebookDocumentParams) -> None:
    """The notebook was written to disk."""
    notebook = ls.session.open.documents.get(params.notebook_document.uri)
    if notebook is not None:
        ls.session.saved(notebook)


def did_close(ls: GradSightServer, params: types.DidCloseNotebookDocumentParams) -> None:
    """The notebook is gone, and with it what was said about its cells."""
    notebook = ls.session.open.documents.get(params.notebook_document.uri)
    if isinstance(notebook, Notebook):
        forget(ls, notebook, [cell.key for cell in notebook.cells])


def _restructure(
    ls: GradSightServer, notebook: Notebook, structure: types.NotebookDocumentCellChangeStructure
) -> None:
    array = structure.array
    opened = {item.uri: item for item in structure.did_open or []}
    kept = {cell.key: cell for cell in notebook.cells}
    fresh = [kept.get(cell.document) or _open_cell(cell, opened) for cell in array.cells or []]
    notebook.cells[array.start : array.start + array.delete_count] = fresh
    present = {cell.key for cell in notebook.cells}
    diagnostics.clear(ls, [key for key in kept if key not in present])
    _index_cells(ls, notebook)
    notebook.rearranged()


def _open_cell(cell: types.NotebookCell, texts: dict[str, types.TextDocumentItem]) -> OpenCell:
    item = texts.get(cell.document)
    is_python = item is None or item.language_id in ("python", "")
    return OpenCell(
        cell.document,
        item.version if item is not None else None,
        Buffer(item.text if item is not None else ""),
        cell.kind == types.NotebookCellKind.Code and is_python,
        _was_run(cell),
    )


def _was_run(cell: types.NotebookCell) -> bool:
    return cell.execution_summary is not None and bool(cell.execution_summary.execution_order)


def _index_cells(ls: GradSightServer, notebook: Notebook) -> None:
    cells = ls.session.open.cells
    for key in [key for key, owner in cells.items() if owner is notebook]:
        del cells[key]
    cells.update({cell.key: notebook for cell in notebook.cells})
