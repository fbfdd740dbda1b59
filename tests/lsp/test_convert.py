"""Columns are the same place in every encoding."""

from __future__ import annotations

from typing import get_args

import pytest

from gradsight.lsp.convert import Encoding, path_of, to_column, to_units, units, uri_of

LINES = ["", "plain", "é = 1", "s = '😀'; y *= 2", "\ud83d lone", "漢字 = 𝒙"]
CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


@pytest.mark.parametrize("encoding", get_args(Encoding))
@pytest.mark.parametrize("line", LINES)
def test_a_column_survives_the_way_to_the_client_and_back(line: str, encoding: Encoding) -> None:
    codec, size = CODECS[encoding]
    for column in range(len(line) + 1):
        count = to_units(line, column, encoding)
        assert count == len(line[:column].encode(codec, "surrogatepass")) // size
        assert to_column(line, count, encoding) == column


def test_inside_a_character_is_its_start() -> None:
    assert to_column("a😀b", 2, "utf-16") == 1
    assert to_column("a😀b", 3, "utf-8") == 1


@pytest.mark.parametrize("encoding", get_args(Encoding))
def test_beyond_the_line_is_its_end(encoding: Encoding) -> None:
    assert to_column("a😀b", 99, encoding) == 3
    assert units("a😀b", "utf-16") == 4


def test_paths_and_addresses_are_told_apart() -> None:
    assert path_of(uri_of("/a/b c.py")) == "/a/b c.py"
    assert path_of("untitled:Untitled-1") == "untitled:Untitled-1"
    assert uri_of("untitled:Untitled-1") == "untitled:Untitled-1"
    assert uri_of("vscode-notebook-cell:/a.ipynb#x") != ""
