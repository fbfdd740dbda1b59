"""The word under the cursor is found without parsing, and known by the name torch has for it."""

from __future__ import annotations

import pytest

from gradsight.session.naming import imported_names, is_inside_string, symbol_at, torch_name, word_at

IMPORTS = """import torch
import torch.nn.functional as F
import numpy as np
from torch import nn, exp as e
from torch.nn import (
    Linear,  # a comment
    ReLU as Rectifier,
)
"""


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("y = torch.|exp(x)", "torch.exp"),
        ("y = F.re|lu(x)", "torch.nn.functional.relu"),
        ("y = nn.functional.|relu(x)", "torch.nn.functional.relu"),
        ("y = e|(x)", "torch.exp"),
        ("self.a = Rectifier|(inplace=True)", "torch.nn.ReLU"),
        ("y = x.mul_|(2)", "Tensor.mul_"),
        ("y = f(x)[0].deta|ch()", "Tensor.detach"),
        ("y = np.|exp(x)", None),
        ("names.|sort()", None),
        ("y = exp|(x)", None),
        ("# x.|exp()", None),
        ("s = 'x.|exp()'", None),
        ('s = f("it\'s"); x.|exp()', "Tensor.exp"),
        ("s = '😀'; y = x.|exp()", "Tensor.exp"),
    ],
)
def test_a_word_has_the_name_that_torch_has_for_it(marked: str, expected: str | None) -> None:
    check(marked, expected)


def test_a_keyword_is_told_from_a_name() -> None:
    word = word_at("loss.backward(retain_graph=True)", 16)
    assert word is not None
    assert word.is_keyword
    word = word_at("loss.backward(gradient == y)", 16)
    assert word is not None
    assert not word.is_keyword


def test_a_docstring_is_no_code() -> None:
    lines = ['"""', "x.clone()", '"""', "x.clone()", "s = '''a'''", "x.clone()"]
    assert [is_inside_string(lines, index) for index in (1, 3, 5)] == [True, False, False]


def check(marked: str, expected: str | None) -> None:
    """The word at the mark is known to torch by this name."""
    column = marked.index("|")
    word = word_at(marked.replace("|", ""), column)
    assert (torch_name(word, imported_names(IMPORTS)) if word is not None else None) == expected


@pytest.mark.parametrize(
    ("line", "sign", "method"),
    [
        ("y = a * b", "*", "mul"),
        ("y = a ** b", "**", "pow"),
        ("y = f(x)[0] @ w", "@", "matmul"),
        ("y //= 2", "//", "floor_divide_"),
        ("y @= w", "@", "matmul"),
        ("y = -a", "-", None),
        ("f(*parts)", "*", None),
        ("def f(a) -> b:", "->", None),
        ("s = 'a * b'", "*", None),
        ("y = a  # a * b", "*", None),
    ],
)
def test_an_operator_sign_stands_for_a_method(line: str, sign: str, method: str | None) -> None:
    found = symbol_at(line, line.index(sign))
    assert (found.method if found is not None else None) == method
