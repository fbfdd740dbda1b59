"""`match` with patterns of attributes and entries, and what a null context hands on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source
from tests.interp.checking import check
from tests.interp.running import refused, safe

CHANGED = "modified by an inplace operation"
POINT = """
        from dataclasses import dataclass
        @dataclass
        class Kept:
            value: object
            tag: str = "a"
        class Pair:
            __match_args__ = ("first", "second")
            def __init__(self, first, second):
                self.first, self.second = first, second
"""


def test_a_value_bound_by_a_class_pattern_is_the_object_itself() -> None:
    refused(
        f"""{POINT}
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        match Kept(y):
            case Kept(value=t) if t is not None:
                t += 1  # GS101
        y.sum().backward()
    """,
        CHANGED,
    )


def test_positional_parts_of_a_class_pattern_are_named_by_the_class() -> None:
    refused(
        f"""{POINT}
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        match Pair(0, y):
            case Kept(t):
                t.mul_(2)
            case Pair(0, t):
                t += 1  # GS101
        y.sum().backward()
    """,
        CHANGED,
    )


def test_a_class_pattern_that_does_not_match_writes_nothing() -> None:
    safe(f"""{POINT}
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        match Kept(y, "b"):
            case Kept(t, "a"):
                t += 1
            case Pair(t, _):
                t += 1
            case _:
                y = y + 1
        y.sum().backward()
    """)


def test_an_entry_bound_by_a_mapping_pattern_is_the_entry_itself() -> None:
    refused(
        """
        w = torch.ones(3, requires_grad=True)
        match {"t": w.exp(), "k": 1}:
            case {"missing": y}:
                pass
            case {"t": y, **rest}:
                y += rest["k"]  # GS101
        y.sum().backward()
    """,
        CHANGED,
    )


def test_a_mapping_pattern_with_another_value_does_not_match() -> None:
    safe("""
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        match {"t": y, "k": 1}:
            case {"t": t, "k": 2}:
                t += 1
        y.sum().backward()
    """)


def test_a_pattern_over_what_is_not_known_decides_nothing() -> None:
    check("""
        from elsewhere import event
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        match event:
            case {"t": t}:
                t += 1
        y.sum().backward()
    """)


def test_a_null_context_hands_on_what_it_got() -> None:
    refused(
        """
        import contextlib
        w = torch.ones(3, requires_grad=True)
        with contextlib.nullcontext(w.exp()) as y:
            y += 1  # GS101
        y.sum().backward()
    """,
        CHANGED,
    )
    safe("""
        import contextlib
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        with contextlib.nullcontext() as nothing:
            y = y + 1
        y.sum().backward()
    """)


def test_displays_in_one_statement_are_looked_for_in_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    walked = 0

    def counting(node: ast.AST) -> Iterator[ast.AST]:
        nonlocal walked
        for part in walk(node):
            walked += 1
            yield part

    walk = ast.walk
    monkeypatch.setattr(ast, "walk", counting)
    displays = "{1: w}, " * 400
    analyze(Source("program.py", f"import torch\nw = torch.ones(3, requires_grad=True)\nd = [{displays}]\n"))
    assert walked < 400 * 60
