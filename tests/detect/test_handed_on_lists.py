"""Lists of layers that an `__init__` also hands on by the name they had before."""

from __future__ import annotations

import ast

import pytest

from gradsight.detect.registration import is_handed_on_by_name


@pytest.mark.parametrize(
    ("text", "is_handed_on"),
    [
        ("self.layers = layers; self.model = nn.Sequential(*layers)", True),
        ("self.layers = layers; self.model = nn.ModuleList(layers)", True),
        ("self.layers = layers; layers.append(nn.Linear(2, 2))", False),
        ("self.layers = []; self.model = nn.Sequential(*others)", False),
    ],
)
def test_a_list_is_handed_on_by_its_other_name(text: str, is_handed_on: bool) -> None:
    assert is_handed_on_by_name(ast.parse(text), "layers") == is_handed_on
