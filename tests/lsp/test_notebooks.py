"""A notebook is one module: its cells share names, and each shows its own findings."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from tests.lsp.editor import FULL, Editor

BOOK = "file:///n/book.ipynb"
CELLS = [
    "%matplotlib inline\nimport torch\nx = torch.ones(3, requires_grad=True)\n!pip list",
    "y = x.exp()",
    "s = '😀'; y *= 3\ny.sum().backward()",
]


def test_a_hazard_over_three_cells_is_shown_in_the_one_that_writes(editor: Editor) -> None:
    cells = open_book(editor, CELLS)
    [found] = editor.diagnostics(cells[2])
    assert (found["code"], found["range"]["start"]) == ("GS101", {"line": 0, "character": 10})
    places = [step["location"] for step in found["relatedInformation"]]
    assert [place["uri"] for place in places] == [cells[1], cells[2]]
    assert editor.diagnostics(cells[0]) == editor.diagnostics(cells[1]) == []
    close_book(editor, cells)
    editor.wait(lambda: editor.published[cells[2]][-1]["diagnostics"] == [])


def test_places_in_a_notebook_are_named_by_cell_and_line(editor: Editor) -> None:
    cells = open_book(editor, CELLS)
    [found] = editor.diagnostics(cells[2])
    told = [step["message"] for step in found["relatedInformation"]]
    assert [message.partition(": ")[0] for message in told] == ["cell 2, line 1", "cell 3, line 2"]
    shown = editor.request(
        "textDocument/hover", {"textDocument": {"uri": cells[2]}, "position": {"line": 1, "character": 0}}
    )
    text = shown["contents"]["value"]
    assert "written in place once (cell 3, line 1)" in text
    assert "kept for backward by `exp` in cell 2, line 1" in text or "cell 2, line 1" in text
    close_book(editor, cells)


def test_a_cell_is_named_by_its_number_among_all_cells(editor: Editor) -> None:
    [asked] = editor.server["capabilities"]["notebookDocumentSync"]["notebookSelector"]
    assert "cells" not in asked, (
        "an editor would send code cells only, and count them differently from what it shows"
    )
    cells = open_book(editor, ["# A lesson", *CELLS], [1, 2, 2, 2])
    [found] = editor.diagnostics(cells[3])
    told = [step["message"] for step in found["relatedInformation"]]
    assert [message.partition(": ")[0] for message in told] == ["cell 3, line 1", "cell 4, line 2"]
    close_book(editor, cells)


def test_a_finding_in_a_cell_that_was_not_run_yet_says_so(editor: Editor) -> None:
    cells = open_book(editor, CELLS)
    [found] = editor.diagnostics(cells[2])
    # Where nothing was run there is nothing to tell apart.
    assert "not been run" not in str(found["relatedInformation"])
    run_cell(editor, cells[0])
    editor.wait(lambda: "not been run" in str(editor.published[cells[2]][-1]["diagnostics"]))
    [found] = editor.published[cells[2]][-1]["diagnostics"]
    assert found["relatedInformation"][-1]["message"] == "cell 3, line 1: this cell has not been run yet"
    run_cell(editor, cells[2])
    editor.wait(lambda: "not been run" not in str(editor.published[cells[2]][-1]["diagnostics"]))
    close_book(editor, cells)


def test_an_edit_in_one_cell_is_felt_in_another(editor: Editor) -> None:
    cells = open_book(editor, CELLS)
    editor.diagnostics(cells[2])
    change = {
        "document": {"uri": cells[1], "version": 2},
        "changes": [
            {
                "range": {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 11}},
                "text": "x * 2",
            }
        ],
    }
    change_book(editor, {"cells": {"textContent": [change]}})
    editor.wait(lambda: editor.published[cells[2]][-1]["diagnostics"] == [])
    close_book(editor, cells)


def test_a_cell_that_goes_takes_its_findings_along(editor: Editor) -> None:
    cells = open_book(editor, CELLS)
    editor.diagnostics(cells[2])
    structure = {"array": {"start": 2, "deleteCount": 1, "cells": []}, "didClose": [{"uri": cells[2]}]}
    change_book(editor, {"cells": {"structure": structure}})
    editor.wait(lambda: editor.published[cells[2]][-1]["diagnostics"] == [])
    close_book(editor, cells[:2])


def test_cells_that_change_places_are_read_in_their_new_order(editor: Editor) -> None:
    cells = open_book(editor, CELLS)
    editor.diagnostics(cells[2])
    order = [{"kind": 2, "document": cells[2]}, {"kind": 2, "document": cells[1]}]
    change_book(editor, {"cells": {"structure": {"array": {"start": 1, "deleteCount": 2, "cells": order}}}})
    editor.wait(lambda: editor.published[cells[2]][-1]["diagnostics"] == [])
    close_book(editor, cells)


def test_a_fix_in_a_cell_edits_that_cell(editor: Editor) -> None:
    cells = open_book(editor, CELLS)
    editor.diagnostics(cells[2])
    [action] = [each for each in editor.actions(cells[2], CELLS[2].index("*=")) if each.get("isPreferred")]
    edit = editor.resolve(action)["edit"]
    assert editor.applied(cells[2], edit) == CELLS[2].replace("y *= 3", "y = y * 3")
    close_book(editor, cells)


def test_source_actions_are_not_offered_in_cells(editor: Editor) -> None:
    cells = open_book(editor, CELLS)
    editor.diagnostics(cells[2])
    assert editor.actions(cells[2], 0, only=["source.fixAll"]) == []
    assert editor.actions(cells[2], 0, only=["source"]) == []
    close_book(editor, cells)


def test_hover_works_in_a_cell(editor: Editor) -> None:
    cells = open_book(editor, CELLS)
    editor.diagnostics(cells[2])
    assert "saves its *output*" in (editor.hover(cells[1], 6) or "")
    assert "GS101" in (editor.hover(cells[2], CELLS[2].index("*=")) or "")
    close_book(editor, cells)


def test_a_hover_leads_to_the_lines_of_other_cells() -> None:
    with Editor(FULL, {"debounce": 0, "client": {"pages": True}}) as own:
        cells = open_book(
            own, ["import torch\nx = torch.ones(3, requires_grad=True)\ny = x.exp()", *CELLS[2:]]
        )
        own.diagnostics(cells[1])
        said = own.hover(cells[1], CELLS[2].index("*=")) or ""
        save = quote(json.dumps([cells[0], 2]))
        assert f"[the save](command:gradsight.showLine?{save}) (cell 1, line 3)" in said
        backward = quote(json.dumps([cells[1], 1]))
        assert f"[the backward](command:gradsight.showLine?{backward}) (cell 2, line 2)" in said


def test_text_cells_are_no_code(editor: Editor) -> None:
    cells = open_book(
        editor, ["import torch", "# words about torch.exp", "x = torch.ones(1)"], kinds=[2, 1, 2]
    )
    editor.diagnostics(cells[2])
    assert editor.hover(cells[1], 18) is None
    close_book(editor, cells)


def test_a_client_without_notebooks_is_not_offered_any() -> None:
    with Editor(capabilities={}) as plain:
        assert "notebookDocumentSync" not in plain.server["capabilities"]


COUNT = iter(range(1000))


def open_book(editor: Editor, texts: list[str], kinds: list[int] | None = None) -> list[str]:
    """Open the notebook with these cells; gives their addresses."""
    cells = [f"vscode-notebook-cell:/n/book.ipynb#{next(COUNT)}" for _ in texts]
    items = []
    for uri, text in zip(cells, texts):
        editor.texts[uri], editor.versions[uri] = text, 1
        items.append({"uri": uri, "languageId": "python", "version": 1, "text": text})
    book = {
        "uri": BOOK,
        "notebookType": "jupyter-notebook",
        "version": 1,
        "cells": [{"kind": kind, "document": uri} for kind, uri in zip(kinds or [2] * len(cells), cells)],
    }
    editor.notify("notebookDocument/didOpen", {"notebookDocument": book, "cellTextDocuments": items})
    return cells


def run_cell(editor: Editor, uri: str) -> None:
    summary = {"executionOrder": 1, "success": True}
    change_book(editor, {"cells": {"data": [{"kind": 2, "document": uri, "executionSummary": summary}]}})


def change_book(editor: Editor, change: dict[str, Any]) -> None:
    params = {"notebookDocument": {"uri": BOOK, "version": 2}, "change": change}
    editor.notify("notebookDocument/didChange", params)


def close_book(editor: Editor, cells: list[str]) -> None:
    identifiers = [{"uri": uri} for uri in cells]
    params = {"notebookDocument": {"uri": BOOK}, "cellTextDocuments": identifiers}
    editor.notify("notebookDocument/didClose", params)
