"""Notebooks: cells joined as one module, magics tolerated, places mapped back."""

from __future__ import annotations

import ast
import json

import pytest

from gradsight.analysis import analyze
from gradsight.model import Span
from gradsight.session.notebooks import Cell, JoinedCells, join_cells, read_notebook, without_magics
from gradsight.session.reading import Unreadable


def notebook(*cells: str, language: str = "python") -> JoinedCells:
    """A notebook of a title and these code cells."""
    content = {
        "cells": [
            {"cell_type": "markdown", "source": ["# A title\n"]},
            *({"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells),
        ],
        "metadata": {"language_info": {"name": language}},
    }
    joined = read_notebook("lab.ipynb", json.dumps(content))
    assert isinstance(joined, JoinedCells)
    return joined


def test_a_finding_is_mapped_to_its_cell_and_line() -> None:
    joined = notebook("import torch\n%matplotlib inline", "x = torch.ones(3, requires_grad=True)\nx += 1")
    (finding,) = analyze(joined.source).findings
    index, span = joined.locate(finding.span)
    assert (joined.cells[index].number, span.line, span.column) == (3, 2, 0)


def test_the_way_there_and_the_way_back_agree() -> None:
    joined = join_cells("lab.ipynb", [Cell(1, "a\nb"), Cell(2, ""), Cell(4, "c\n"), Cell(5, "d")])
    for index, cell in enumerate(joined.cells):
        for line in range(1, cell.text.count("\n") + 2):
            assert joined.cell_of(joined.joined_line(index, line)) == (index, line)
    assert joined.locate(Span(6, 0, 6, 1)) == (3, Span(1, 0, 1, 1))


@pytest.mark.parametrize(
    ("cell", "python"),
    [
        ("%matplotlib inline", "pass"),
        ("if True:\n    %timeit f()", "if True:\n    pass"),
        ("files = !ls", "files = None"),
        ("out = %sql select 1", "out = None"),
        ("torch.no_grad?", "pass"),
        ("?torch", "pass"),
        ("!pip install \\\n  torch \\\n  numpy\nx = 1", "pass\n\n\nx = 1"),
        ("%%time\nx = 1", "\nx = 1"),
        ("\n%%bash\nrm -r /\necho x", "\n\n\n"),
        ("x = 7\nx %= 2", "x = 7\nx %= 2"),
        ("y = (7\n     % 2)", "y = (7\n     % 2)"),
        ('"""\n%matplotlib\n"""', '"""\n%matplotlib\n"""'),
        ("a = 'who?'", "a = 'who?'"),
        ("a = b != c", "a = b != c"),
        ("print(f'{x!r}')", "print(f'{x!r}')"),
    ],
)
def test_what_only_ipython_understands_is_replaced_line_by_line(cell: str, python: str) -> None:
    cleaned = "\n".join(without_magics(cell.split("\n")))
    assert cleaned == python
    ast.parse(cleaned)


def test_a_notebook_in_another_language_has_no_python() -> None:
    assert notebook("using torch", language="julia").source.text == ""


def test_cells_without_text_make_no_trouble() -> None:
    joined = notebook()
    assert joined.source.text == ""
    assert joined.locate(Span(1, 0, 1, 0)) == (0, Span(1, 0, 1, 0))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": 3}', "[" * 100_000])
def test_what_is_no_notebook_is_told(text: str) -> None:
    problem = read_notebook("lab.ipynb", text)
    assert isinstance(problem, Unreadable)
    assert problem.reason.startswith("is not a notebook")
