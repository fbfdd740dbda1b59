"""The core is total: any text gives a report, and the same text gives the same report."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gradsight
from gradsight.analysis import analyze
from gradsight.model import Report, Settings, Source
from gradsight_dev.fuzz.grammar import generate
from gradsight_dev.fuzz.mangle import FRAGMENTS, mangle

HEAD = "import torch\nx = torch.ones(3, requires_grad=True)\n"
OWN_SOURCES = sorted(Path(gradsight.__file__).parent.rglob("*.py"))


ODD_TEXTS = (
    "",
    "\x00",
    "\ufeffimport torch\n",
    HEAD + "\x00\x00",
    "\udcff\ud800",
    "\x0c\x0b\x1c\x85\u2028",
    "\r\rimport torch\r\nx = 1\r",
    "\\",
    "#" * 1_000_000,
    "x = " + "1" * 1_000_000,
    "x = '" + "a" * 1_000_000 + "'",
    HEAD + "y = [" + "x, " * 100_000 + "]",
    HEAD + "y = " + " + ".join(["x"] * 3_000),
    HEAD + "y = x" + ".exp()" * 2_000,
    HEAD + "y = x" + "[0]" * 2_000,
    HEAD + "y = " + "(" * 5_000 + "x" + ")" * 5_000,
    HEAD + "y = " + "[" * 150 + "x" + "]" * 150,
    HEAD + "y = " + "-" * 3_000 + "x",
    HEAD + "y = " + "not " * 3_000 + "x",
    HEAD + "y = " + "lambda: " * 1_000 + "x",
    HEAD + "y = " + "f(" * 90 + "x" + ")" * 90,
    HEAD + "y = " + "x if x else " * 2_000 + "x",
    HEAD + "y = x = " * 1_000 + "x",
    HEAD + "x *= 2; " * 3_000,
    "".join("    " * depth + "if True:\n" for depth in range(99)) + "    " * 99 + "pass\n",
    "".join(" " * depth + "def f():\n" for depth in range(60)) + " " * 60 + "pass\n",
    "".join(" " * depth + "for i in range(3):\n" for depth in range(18)) + " " * 18 + "x *= 2\n",
    "".join(" " * depth + "class A:\n" for depth in range(60)) + " " * 60 + "pass\n",
    HEAD + "".join(f"def f{n}(t): return f{n + 1}(t)\n" for n in range(800)) + "f0(x)\n",
    HEAD + "def f(t): return f(t)\nf(x)\n",
    HEAD + "def f(t): return g(t)\ndef g(t): return f(t * 2)\nf(x).backward()\n",
    HEAD + "".join(f"if c{n}: x = x * {n}\n" for n in range(300)) + "x.sum().backward()\n",
    HEAD + "class A(A): pass\nclass B(C): pass\nclass C(B): pass\nA().x\nC().forward(x)\n",
    HEAD + "x.x = x\nx.x.x.x.backward()\nl = []\nl.append(l)\nd = {}\nd[d] = d\nprint(l[0][0][0])\n",
    HEAD + "def f(*a, **k): return f(*a, **k)\nf(*[x] * 3, **{'a': x})\n",
    HEAD + "while True:\n    x = [x, x]\n",
    HEAD + "for i in range(10 ** 100):\n    x = x * i\n",
    HEAD + "y = x * 10 ** 10 ** 10\nz = 'a' * 10 ** 12\nw = [0] * 10 ** 12\nv = 1 << 10 ** 9\n",
    HEAD + "y = 1 / 0\nz = [][5]\nw = {}['a']\nv = int('x')\nu = 'a' + 1\n",
    HEAD + "y = torch.zeros(-1)\nz = x.view(0, -1)\nw = x.chunk(0)\nv = range(0, 5, 0)\n",
    HEAD + "torch = None\nx.backward()\ntorch.ones(3)\ndel x\nx.backward()\n",
    HEAD + "from torch import *\nfrom .... import y\nimport a.b.c as d\nfrom __future__ import braces\n",
    "print 'hello'\nexec 'x' in {}\nraise E, 'x'\nexcept E, e:\n    pass\nx = `1`\ny = 0777\nz <> 1\n",
    "try:\n    pass\nexcept A, B:\n    pass\n",
    "x = t'{name}'\ntype X[T] = list[T]\ndef f[T: int](a: T) -> T: ...\nclass A[*Ts]: ...\n",
    HEAD
    + "match x:\n    case [a, *b] if a: a *= 2\n    case {'k': v, **r}: v.backward()\n    case A(b=c) | c: pass\n    case _: x += 1\n",
    HEAD
    + "async def f():\n    async with a as b, c: pass\n    async for i in x: await i\n    return [i async for i in x]\n",
    HEAD
    + "def f(a, /, b, *, c=x, **d):\n    global x\n    x += 1\n    def g():\n        nonlocal b\n        b *= 2\n    yield from g()\n",
    HEAD
    + "x: 'torch.Tensor' = x\n(x) += 1\nx, *y = x\n*x, = x\n[a, (b, c)] = x\nfor x.y in x: pass\nfor x[0] in x: pass\n",
    HEAD + "return x\nyield x\nbreak\ncontinue\nawait x\n",
    HEAD + "with torch.no_grad(), open('f') as f, x as (a, b): pass\nassert x, x\nraise x from x\n",
    HEAD
    + "(lambda *a, **k: [i for i in a for a in i if (b := i)])(x)\n{**x, 'a': x}\n{*x}\nx[1:2:3, ..., None, -1]\n",
)


def check(text: str) -> Report:
    """Analyse the text; the answer is a report whose places lie in the text."""
    report = analyze(Source("<text>", text), Settings(hints=True))
    assert isinstance(report, Report)
    lines = len(text.splitlines()) + 1
    for finding in report.findings:
        assert 1 <= finding.span.line <= lines, finding
        assert "\n" not in finding.message
    return report


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=400))
def test_any_text(text: str) -> None:
    check(text)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=400))
def test_any_bytes(content: bytes) -> None:
    check(content.decode("latin-1"))


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30))
def test_any_row_of_fragments(fragments: list[str]) -> None:
    check(HEAD + "".join(fragments))


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_spoiled_programs(first: int) -> None:
    for seed in range(first, first + 50):
        check(mangle(generate(seed).text, random.Random(seed)))


def test_spoiled_real_sources() -> None:
    rng = random.Random(5)
    for path in rng.sample(OWN_SOURCES, min(25, len(OWN_SOURCES))):
        text = path.read_text(encoding="utf-8")
        check(text)
        check(mangle(text, rng))


@pytest.mark.parametrize("number", range(len(ODD_TEXTS)))
def test_odd_texts(number: int) -> None:
    check(ODD_TEXTS[number])


def test_the_parts_that_parse_are_analysed() -> None:
    report = check(
        "import torch\n"
        "def broken(:\n"
        "    pass\n"
        "\n"
        "def train():\n"
        "    x = torch.ones(3, requires_grad=True)\n"
        "    y = x.exp()\n"
        "    y *= 2\n"
        "    y.sum().backward()\n"
    )
    assert report.syntax_problems
    assert any(finding.code == "GS101" for finding in report.findings)


def test_the_same_text_gives_the_same_report() -> None:
    for seed in range(60):
        text = generate(seed).text
        ast.parse(text)
        assert check(text) == check(text)
