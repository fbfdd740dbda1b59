"""The parts of a node are those of `ast.walk`, in its order, without contexts and operators."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from gradsight.interp.syntax_parts import syntax_parts

LEFT_OUT = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
TEXTS = [
    "match a:\n    case {'k': 1, **rest}: pass\n    case C(x, y=2) | [1, *others]: pass\n    case None: pass\n    case b if b: pass",
    "def f(a, /, b: int = 1, *c, d, e=2, **g) -> str:\n    global x\n    yield {**a, 'k': b}\n    return f'{a!r:>{b}}'",
    "async def f():\n    async for a in b: await a\n    async with c as d, e: del d[1:2, ...]\n    return [x async for x in y if not x]",
    "try:\n    import a.b as c\n    from .d import (e as f, g)\nexcept (A, B) as h:\n    raise C from h\nelse:\n    x: int = -1\nfinally:\n    x += (y := 2)",
    "class A(B, metaclass=C):\n    a = lambda *b, c=1: (b, c)\n    @d\n    def e(self): nonlocal_ = 1 < 2 <= 3 and not 4",
]
if sys.version_info >= (3, 12):
    TEXTS.append("type A[T: int, *Ts, **P] = dict[T, T]\ndef f[T](a: T) -> T: return a")


def check(text: str) -> None:
    """The parts of every node of a text."""
    for node in ast.walk(ast.parse(text)):
        assert syntax_parts(node) == [part for part in ast.walk(node) if not isinstance(part, LEFT_OUT)] or (
            isinstance(node, LEFT_OUT)
        )


@pytest.mark.parametrize("text", TEXTS)
def test_every_kind_of_syntax(text: str) -> None:
    check(text)


def test_a_long_file() -> None:
    tree = ast.parse(Path(ast.__file__).read_text(encoding="utf-8"))
    assert syntax_parts(tree) == [part for part in ast.walk(tree) if not isinstance(part, LEFT_OUT)]


def test_the_parts_of_a_function_are_looked_up_once() -> None:
    function = ast.parse("def f(a):\n    return a + 1").body[0]
    assert syntax_parts(function) is syntax_parts(function)
