"""Protocols of Python through which a tensor changes hands: each beside a twin in which nothing goes wrong."""

from __future__ import annotations

import pytest

from gradsight.analysis import analyze
from gradsight.model.source import Source

HEAD = "import torch\nw = torch.ones(3, requires_grad=True)\n"
WAYS: dict[str, str] = {
    "sent to a generator": """
def steps():
    t = yield
    t.add_(1)
    yield
g = steps()
next(g)
g.send(y)
""",
    "sent through another generator": """
def inner():
    t = yield 1
    t.add_(1)
    return t
def outer():
    got = yield from inner()
    yield got
g = outer()
next(g)
assert g.send(y) is y
""",
    "returned by a generator": """
def inner():
    yield 1
    return y
def outer():
    got = yield from inner()
    got.add_(1)
list(outer())
""",
    "written when a generator is closed": """
def run():
    try:
        yield 1
    except Exception:
        raise AssertionError
    finally:
        y.add_(1)
g = run()
next(g)
g.close()
""",
    "written when something is thrown into a generator": """
def run():
    try:
        yield 1
    except ValueError:
        y.add_(1)
    yield 2
g = run()
next(g)
g.throw(ValueError())
""",
    "held by what __new__ makes": """
class Box:
    def __new__(cls, t):
        self = super().__new__(cls)
        self.t = t
        return self
Box(y).t.add_(1)
""",
    "a registry of subclasses": """
class Base:
    made = {}
    def __init_subclass__(cls, key=None, **rest):
        super().__init_subclass__(**rest)
        Base.made[key] = cls
class Child(Base, key="add"):
    def change(self, t):
        t += 1
Base.made["add"]().change(y)
""",
    "a class made of parts": "Box = type('Box', (), {'change': lambda self, t: t.add_(1)})\nBox().change(y)\n",
    "iteration by number": """
class Row:
    def __getitem__(self, i):
        if i > 0:
            raise IndexError
        return y
for t in Row():
    t += 1
""",
    "a context variable": """
import contextvars
v = contextvars.ContextVar("v", default=None)
token = v.set(y)
v.get().add_(1)
v.reset(token)
assert v.get() is None
""",
    "groups": """
import itertools
for k, g in itertools.groupby([torch.ones(3), y], key=lambda t: t is y):
    for t in g:
        if k:
            t.add_(1)
""",
    "a tree": "from torch.utils._pytree import tree_map\ntree_map(lambda t: t.add_(1), {'a': [(y,)]})\n",
}


def loud(text: str) -> set[str]:
    findings = analyze(Source("/nowhere/protocols.py", text)).findings
    return {finding.code for finding in findings if finding.severity in ("error", "warning")}


@pytest.mark.parametrize("way", WAYS)
def test_a_write_behind_a_protocol_is_seen_where_torch_refuses_it(way: str) -> None:
    import torch

    for made, is_refused in (("w.exp()", True), ("w * 2", False)):
        text = f"{HEAD}y = {made}\n{WAYS[way].strip()}\ny.sum().backward()\n"
        assert loud(text) == ({"GS101"} if is_refused else set()), text
        names: dict[str, object] = {}
        if is_refused:
            with pytest.raises(RuntimeError, match="inplace"):
                exec(text, names)
        else:
            exec(text, names)
            assert torch.equal(names["w"].grad, torch.full((3,), 2.0))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "def run():\n    try:\n        yield 1\n    finally:\n        y.add_(1)\ng = run()\ng.close()\n",
        "def run():\n    t = yield\n    if t is not None:\n        t.add_(1)\nlist(run())\n",
        (
            "class One:\n    only = None\n    def __new__(cls):\n        if cls.only is None:\n"
            "            cls.only = super().__new__(cls)\n            cls.only.t = torch.ones(3)\n        return cls.only\n"
            "assert One() is One()\nOne().t.add_(1)\n"
        ),
        "def run():\n    try:\n        yield 1\n    except Exception:\n        y.add_(1)\ng = run()\nnext(g)\ng.close()\n",
    ],
)
def test_what_a_protocol_does_not_reach_is_not_written(text: str) -> None:
    program = f"{HEAD}y = w.exp()\n{text}y.sum().backward()\n"
    exec(program, {})
    assert not loud(program)
