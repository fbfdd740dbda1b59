"""Decorators of other files: those that only write documentation are not followed, all others are."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from gradsight.analysis import analyze
from gradsight.interp.paths.descriptions import only_describes
from gradsight.model import Source

WRITER = """
    import inspect
    import re
    from dataclasses import is_dataclass

    INTRO = "what it is given"

    def lines_of(target, indent):
        told = []
        for name, one in inspect.signature(target).parameters.items():
            told.append(" " * indent + name + str(one.annotation))
        return "\\n".join(told)

    def of_class(cls, intro=None):
        if "Output" in (one.__name__ for one in cls.__mro__):
            intro = re.sub("a", "b", intro or INTRO)
        cls.__doc__ = (intro or "") + documented(cls.__init__, owner=cls).__doc__
        return cls

    def documented(function, owner=None):
        text = INTRO if is_dataclass(owner) else lines_of(function, 4)
        text += getattr(owner, "note", "")
        if not text:
            raise ValueError(f"{function.__qualname__} has no parameters")
        function.__doc__ = text
        return function
"""


def check(body: str, expected: set[str] | None, name: str = "decorator", given: str = "thing") -> None:
    """What a function is found to call of the thing that it describes; None if it does more than describe."""
    tree = ast.parse(dedent(body))
    function = next(one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == name)

    def is_foreign(module: str, level: int) -> bool:
        return level == 0 and not module.startswith("ours")

    found = only_describes(function, frozenset(given.split()), tree.body, is_foreign)
    assert found == expected


def test_who_writes_documentation_only_describes() -> None:
    check(WRITER, set(), "documented", "function owner")
    check(WRITER, set(), "of_class", "cls")


def test_methods_that_it_calls_of_the_thing_are_told() -> None:
    check("def decorator(thing):\n    thing.__doc__ = str(thing.parts())\n    return thing", {"parts"})


@pytest.mark.parametrize(
    "line",
    [
        "thing.forward = thing.call",
        "thing.extra['a'] = 1",
        "del thing.forward",
        "setattr(thing, 'forward', None)",
        "KNOWN.append(thing)",
        "KNOWN[thing.__name__] = thing",
        "KNOWN = {'a': thing}",
        "global last; last = thing",
        "thing = wrap(thing)",
        "other = thing; other.forward = None",
        "for one in thing.__mro__: one.forward = None",
        "with thing: pass",
        "helper = lambda: thing",
        "ours_too(thing)",
        "keep(thing)",
        "from ours import start; start()",
        "import torch",
        "if thing.__doc__: return None",
        "if thing.__doc__: return keep",
        "if thing.__doc__: return other_one(thing)",
        "functools.wraps(thing)",
    ],
)
def test_whoever_keeps_changes_or_replaces_the_thing_does_more(line: str) -> None:
    head = """
        import functools
        from ours import ours_too
        KNOWN = []
        def wrap(thing):
            return thing
        def keep(thing):
            KNOWN.append(thing)
        def other_one(thing):
            return str(thing)
    """
    check(dedent(head) + f"def decorator(thing):\n    {line}\n    return thing", None)


def test_a_way_past_the_end_gives_nothing_back() -> None:
    check("def decorator(thing):\n    if thing.__doc__:\n        return thing", None)


USED = """
    import torch
    from torch import nn
    from docs import {name}

    @{name}
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        @{name}
        def forward(self, x):
            y = self.layer(x).exp()
            y *= 2
            return y
"""
COSTLY = """
    REGISTRY = []

    def documented(thing):
        text = ""
        for word in str(thing.__doc__).split():
            if word:
                text += word
        thing.__doc__ = text
        return thing

    def listed(thing):
        REGISTRY.append(thing)
        return thing

    def replaced(thing):
        return 0
"""


@pytest.mark.parametrize(
    ("name", "expected"), [("documented", ["GS101"]), ("listed", ["GS101"]), ("replaced", [])]
)
def test_what_is_described_is_what_it_was(name: str, expected: list[str]) -> None:
    docs = Source("docs.py", dedent(COSTLY))
    report = analyze(
        Source("main.py", dedent(USED).format(name=name)),
        None,
        lambda module, level, path: docs if module == "docs" else None,
    )
    assert [
        finding.code for finding in report.findings if finding.severity in ("error", "warning")
    ] == expected
