"""`python -m gradsight_dev.attacks`: one hazard and its harmless twin in many disguises; torch says what is true of each.

A disguise is a program with `VALUE` for the operator that makes `y` and `WRITE` for the write.  With `exp` torch refuses the
backward; with a product by a number everything is exact.  GradSight must not fail, must say nothing loud about the twin, and the
text after its safe fixes must run wherever the program did, or raise no longer.  Disguises in which it does not see the hazard
are counted: silence there is a miss, never an all-clear.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from dataclasses import dataclass, field
from typing import Any

from gradsight.analysis import Analyser, analyze
from gradsight.fixing import fix_all
from gradsight.model.source import Source
from gradsight_dev.attack_kinds import KINDS

HEAD = "import torch\nw = torch.ones(3, requires_grad=True)\n"
VALUES = {"hazard": "w.exp()", "twin": "w * 2"}
LOUD = ("error", "warning")

DISGUISES: dict[str, str] = {
    "plain": "y = VALUE\ny += 1\ny.sum().backward()\n",
    "walrus in a condition": "if (y := VALUE) is not None:\n    y += 1\ny.sum().backward()\n",
    "walrus in an argument": "(y := VALUE).add_(1)\ny.sum().backward()\n",
    "form feed between statements": "y = VALUE\n\f\ny += 1\ny.sum().backward()\n",
    "backslash continuation": "y = VALUE\ny \\\n  += \\\n  1\ny.sum().backward()\n",
    "semicolons": "y = VALUE; y += 1; y.sum().backward()\n",
    "compatibility characters in the name": "y = VALUE\n\uff59 += 1\ny.sum().backward()\n",
    "letters of another script": "\u03b3 = VALUE\n\u03b3 += 1\n\u03b3.sum().backward()\n",
    "operator.iadd": "import operator\ny = VALUE\ny = operator.iadd(y, 1)\ny.sum().backward()\n",
    "getattr with the name of the method": "y = VALUE\ngetattr(y, 'add_')(1)\ny.sum().backward()\n",
    "unbound method": "y = VALUE\ntorch.Tensor.add_(y, 1)\ny.sum().backward()\n",
    "method kept in a variable": "y = VALUE\nchange = y.add_\nchange(1)\ny.sum().backward()\n",
    "functools.partial": "from functools import partial\ny = VALUE\npartial(torch.Tensor.add_, y)(1)\ny.sum().backward()\n",
    "operator.methodcaller": "import operator\ny = VALUE\noperator.methodcaller('add_', 1)(y)\ny.sum().backward()\n",
    "lambda": "y = VALUE\n(lambda t: t.add_(1))(y)\ny.sum().backward()\n",
    "map over a list": "y = VALUE\nlist(map(lambda t: t.add_(1), [y]))\ny.sum().backward()\n",
    "list comprehension": "y = VALUE\n[t.add_(1) for t in (y,)]\ny.sum().backward()\n",
    "dict comprehension": "y = VALUE\n{k: t.add_(1) for k, t in {'y': y}.items()}\ny.sum().backward()\n",
    "set of identities": "y = VALUE\nseen = {id(y)}\ny.add_(1) if id(y) in seen else None\ny.sum().backward()\n",
    "conditional expression": "y = VALUE\ny.add_(1) if True else y\ny.sum().backward()\n",
    "short circuit": "y = VALUE\nx = 1 and y.add_(1)\ny.sum().backward()\n",
    "chained assignment": "y = z = VALUE\nz += 1\nz.sum().backward()\n",
    "tuple swap": "y, z = VALUE, 0\ny, z = z, y\nz += 1\nz.sum().backward()\n",
    "star target": "y, *rest = [VALUE, 1, 2]\ny += 1\ny.sum().backward()\n",
    "nested target": "(a, [y, b]) = (0, [VALUE, 1])\ny += 1\ny.sum().backward()\n",
    "loop target": "for y in [VALUE]:\n    y += 1\ny.sum().backward()\n",
    "with target": "import contextlib\nwith contextlib.nullcontext(VALUE) as y:\n    y += 1\ny.sum().backward()\n",
    "match capture": "match VALUE:\n    case y:\n        y += 1\ny.sum().backward()\n",
    "match class pattern": "class P:\n    __match_args__ = ('t',)\n    def __init__(self, t):\n        self.t = t\nmatch P(VALUE):\n    case P(y):\n        y += 1\ny.sum().backward()\n",
    "match mapping pattern": "match {'t': VALUE, 'k': 1}:\n    case {'t': y, **rest}:\n        y += 1\ny.sum().backward()\n",
    "try else": "y = VALUE\ntry:\n    pass\nexcept ValueError:\n    pass\nelse:\n    y += 1\ny.sum().backward()\n",
    "finally": "y = VALUE\ntry:\n    pass\nfinally:\n    y += 1\ny.sum().backward()\n",
    "while with else": "y = VALUE\nn = 0\nwhile n < 1:\n    n += 1\nelse:\n    y += 1\ny.sum().backward()\n",
    "for with else": "y = VALUE\nfor _ in range(2):\n    pass\nelse:\n    y += 1\ny.sum().backward()\n",
    "generator": "y = VALUE\ndef steps():\n    y.add_(1)\n    yield 1\nlist(steps())\ny.sum().backward()\n",
    "generator sent a value": "y = VALUE\ndef steps():\n    t = yield\n    t.add_(1)\n    yield\ng = steps()\nnext(g)\ng.send(y)\ny.sum().backward()\n",
    "yield from": "y = VALUE\ndef inner():\n    y.add_(1)\n    yield 1\ndef outer():\n    yield from inner()\nlist(outer())\ny.sum().backward()\n",
    "closure cell": "y = VALUE\ndef make(t):\n    def change():\n        t.add_(1)\n    return change\nmake(y)()\ny.sum().backward()\n",
    "nonlocal": "def run():\n    y = VALUE\n    def change():\n        nonlocal y\n        y += 1\n    change()\n    y.sum().backward()\nrun()\n",
    "global": "y = VALUE\ndef change():\n    global y\n    y += 1\nchange()\ny.sum().backward()\n",
    "default argument": "y = VALUE\ndef change(t=y):\n    t += 1\nchange()\ny.sum().backward()\n",
    "keyword only": "y = VALUE\ndef change(*, t):\n    t += 1\nchange(t=y)\ny.sum().backward()\n",
    "variable arguments": "y = VALUE\ndef change(*ts, **named):\n    for t in ts:\n        t += 1\nchange(y, k=1)\ny.sum().backward()\n",
    "spread of a dict": "y = VALUE\ndef change(t, k):\n    t += k\nchange(**{'t': y, 'k': 1})\ny.sum().backward()\n",
    "decorator that calls": "y = VALUE\ndef twice(f):\n    def inner(t):\n        return f(t)\n    return inner\n@twice\ndef change(t):\n    t += 1\nchange(y)\ny.sum().backward()\n",
    "functools.wraps": "import functools\ny = VALUE\ndef logged(f):\n    @functools.wraps(f)\n    def inner(*a):\n        return f(*a)\n    return inner\n@logged\ndef change(t):\n    t += 1\nchange(y)\ny.sum().backward()\n",
    "functools.lru_cache": "import functools\n@functools.lru_cache\ndef value():\n    return VALUE\ny = value()\ny += 1\nvalue().sum().backward()\n",
    "functools.reduce": "import functools\ny = VALUE\nfunctools.reduce(lambda t, k: t.add_(k), [1, 2], y)\ny.sum().backward()\n",
    "singledispatch": "import functools\ny = VALUE\n@functools.singledispatch\ndef change(t):\n    t += 1\nchange(y)\ny.sum().backward()\n",
    "recursion": "y = VALUE\ndef change(t, n):\n    if n == 0:\n        t += 1\n        return\n    change(t, n - 1)\nchange(y, 3)\ny.sum().backward()\n",
    "attribute of an object": "class Box:\n    pass\nbox = Box()\nbox.y = VALUE\nbox.y += 1\nbox.y.sum().backward()\n",
    "attribute of a class": "class Box:\n    y = VALUE\nBox.y += 1\nBox.y.sum().backward()\n",
    "attribute of a function": "def f():\n    pass\nf.y = VALUE\nf.y += 1\nf.y.sum().backward()\n",
    "property": "class Box:\n    def __init__(self):\n        self._y = VALUE\n    @property\n    def y(self):\n        return self._y\nbox = Box()\nbox.y.add_(1)\nbox.y.sum().backward()\n",
    "slots": "class Box:\n    __slots__ = ('y',)\nbox = Box()\nbox.y = VALUE\nbox.y += 1\nbox.y.sum().backward()\n",
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass Box:\n    y: object\nbox = Box(VALUE)\nbox.y += 1\nbox.y.sum().backward()\n",
    "frozen dataclass": "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Box:\n    y: object\nbox = Box(VALUE)\nbox.y.add_(1)\nbox.y.sum().backward()\n",
    "dataclass with a factory": "from dataclasses import dataclass, field\n@dataclass\nclass Box:\n    y: object = field(default_factory=lambda: VALUE)\nbox = Box()\nbox.y += 1\nbox.y.sum().backward()\n",
    "named tuple": "from collections import namedtuple\nPair = namedtuple('Pair', 'y k')\npair = Pair(VALUE, 1)\npair.y.add_(pair.k)\npair.y.sum().backward()\n",
    "typed named tuple": "from typing import NamedTuple\nclass Pair(NamedTuple):\n    y: object\n    k: int = 1\npair = Pair(VALUE)\npair.y.add_(pair.k)\npair.y.sum().backward()\n",
    "simple namespace": "from types import SimpleNamespace\nbox = SimpleNamespace(y=VALUE)\nbox.y += 1\nbox.y.sum().backward()\n",
    "setattr and getattr": "class Box:\n    pass\nbox = Box()\nsetattr(box, 'y', VALUE)\ngetattr(box, 'y').add_(1)\nbox.y.sum().backward()\n",
    "vars": "class Box:\n    pass\nbox = Box()\nvars(box)['y'] = VALUE\nbox.y += 1\nbox.y.sum().backward()\n",
    "call operator": "class Change:\n    def __call__(self, t):\n        t += 1\ny = VALUE\nChange()(y)\ny.sum().backward()\n",
    "context manager of its own": "class Change:\n    def __init__(self, t):\n        self.t = t\n    def __enter__(self):\n        return self\n    def __exit__(self, *e):\n        self.t.add_(1)\ny = VALUE\nwith Change(y):\n    pass\ny.sum().backward()\n",
    "contextmanager": "from contextlib import contextmanager\ny = VALUE\n@contextmanager\ndef changed(t):\n    t += 1\n    yield t\nwith changed(y):\n    pass\ny.sum().backward()\n",
    "exit stack": "from contextlib import ExitStack\ny = VALUE\nwith ExitStack() as stack:\n    stack.callback(y.add_, 1)\ny.sum().backward()\n",
    "class method": "class Box:\n    @classmethod\n    def change(cls, t):\n        t += 1\ny = VALUE\nBox.change(y)\ny.sum().backward()\n",
    "static method": "class Box:\n    @staticmethod\n    def change(t):\n        t += 1\ny = VALUE\nBox.change(y)\ny.sum().backward()\n",
    "inherited method": "class A:\n    def change(self, t):\n        t += 1\nclass B(A):\n    pass\ny = VALUE\nB().change(y)\ny.sum().backward()\n",
    "super call": "class A:\n    def change(self, t):\n        t += 1\nclass B(A):\n    def change(self, t):\n        super().change(t)\ny = VALUE\nB().change(y)\ny.sum().backward()\n",
    "mixin": "class M:\n    def change(self):\n        self.y += 1\nclass B(M):\n    def __init__(self):\n        self.y = VALUE\nb = B()\nb.change()\nb.y.sum().backward()\n",
    "list entry": "ys = [VALUE]\nys[0] += 1\nys[0].sum().backward()\n",
    "list entry from the end": "ys = [0, VALUE]\nys[-1] += 1\nys[-1].sum().backward()\n",
    "dict entry": "ys = {'a': VALUE}\nys['a'] += 1\nys['a'].sum().backward()\n",
    "dict get": "ys = {'a': VALUE}\nys.get('a').add_(1)\nys['a'].sum().backward()\n",
    "dict pop": "ys = {'a': VALUE}\ny = ys.pop('a')\ny += 1\ny.sum().backward()\n",
    "setdefault": "ys = {}\nys.setdefault('a', VALUE).add_(1)\nys['a'].sum().backward()\n",
    "defaultdict": "from collections import defaultdict\nys = defaultdict(lambda: VALUE)\nys['a'] += 1\nys['a'].sum().backward()\n",
    "deque": "from collections import deque\nys = deque([VALUE])\nys[0].add_(1)\nys[0].sum().backward()\n",
    "ordered dict": "from collections import OrderedDict\nys = OrderedDict(a=VALUE)\nys['a'] += 1\nys['a'].sum().backward()\n",
    "chain of dicts": "ys = {'a': {'b': [VALUE]}}\nys['a']['b'][0] += 1\nys['a']['b'][0].sum().backward()\n",
    "zip": "y = VALUE\nfor t, k in zip([y], [1]):\n    t += k\ny.sum().backward()\n",
    "enumerate": "ys = [VALUE]\nfor i, t in enumerate(ys):\n    t += 1\nys[0].sum().backward()\n",
    "reversed": "ys = [VALUE]\nfor t in reversed(ys):\n    t += 1\nys[0].sum().backward()\n",
    "sorted by a key": "ys = [VALUE]\nfor t in sorted(ys, key=id):\n    t += 1\nys[0].sum().backward()\n",
    "iter and next": "y = VALUE\nnext(iter([y])).add_(1)\ny.sum().backward()\n",
    "itertools.chain": "import itertools\ny = VALUE\nfor t in itertools.chain([y]):\n    t += 1\ny.sum().backward()\n",
    "a view of it": "y = VALUE\ny.view(-1).add_(1)\ny.sum().backward()\n",
    "a transposed view": "y = VALUE\ny.reshape(1, 3).t().add_(1)\ny.sum().backward()\n",
    "an item": "y = VALUE\ny[0] = 5\ny.sum().backward()\n",
    "a slice": "y = VALUE\ny[1:] += 1\ny.sum().backward()\n",
    "a mask": "y = VALUE\ny[y > 0] = 0\ny.sum().backward()\n",
    "an ellipsis": "y = VALUE\ny[...] = 0\ny.sum().backward()\n",
    "detach": "y = VALUE\ny.detach().add_(1)\ny.sum().backward()\n",
    "fill": "y = VALUE\ny.fill_(3)\ny.sum().backward()\n",
    "out argument": "y = VALUE\nwith torch.no_grad():\n    torch.add(y, 1, out=y)\ny.sum().backward()\n",
    "clamp": "y = VALUE\ny.clamp_(0, 9)\ny.sum().backward()\n",
    "copy": "y = VALUE\ny.copy_(torch.zeros(3))\ny.sum().backward()\n",
    "relu of torch": "y = VALUE\ntorch.relu_(y)\ny.sum().backward()\n",
    "functional with inplace": "import torch.nn.functional as F\ny = VALUE\nF.relu(y, inplace=True)\ny.sum().backward()\n",
    "layer with inplace": "from torch import nn\ny = VALUE\nnn.Sequential(nn.ReLU(inplace=True))(y)\ny.sum().backward()\n",
    "foreach": "y = VALUE\ntorch._foreach_add_([y], 1)\ny.sum().backward()\n",
    "autograd.backward": "y = VALUE\ny += 1\ntorch.autograd.backward(y.sum())\n",
    "autograd.grad": "y = VALUE\ny += 1\ntorch.autograd.grad(y.sum(), w)\n",
    "backward with inputs": "y = VALUE\ny += 1\ny.sum().backward(inputs=[w])\n",
    "gradient argument": "y = VALUE\ny += 1\ny.backward(torch.ones(3))\n",
    "retained gradient": "y = VALUE\ny.retain_grad()\ny += 1\ny.sum().backward()\n",
    "enable_grad inside no_grad": "with torch.no_grad():\n    with torch.enable_grad():\n        y = VALUE\n        y += 1\n        y.sum().backward()\n",
    "set_grad_enabled": "with torch.set_grad_enabled(True):\n    y = VALUE\n    y += 1\n    y.sum().backward()\n",
    "a type comment": "y = VALUE  # type: ignore\ny += 1  # noqa\ny.sum().backward()\n",
    "annotated": "y: torch.Tensor = VALUE\ny += 1\ny.sum().backward()\n",
    "a future import": "from __future__ import annotations\nimport torch\nw = torch.ones(3, requires_grad=True)\ny: torch.Tensor = VALUE\ny += 1\ny.sum().backward()\n",
    "names of builtins": "len = VALUE\nlen += 1\nlen.sum().backward()\n",
    "the name torch again": "t, torch_ = torch, torch\ny = VALUE\ny += 1\ny.sum().backward()\ntorch = None\n",
    "exec of a constant": "ns = {'w': w}\nexec('y = VALUE\\ny += 1\\ny.sum().backward()', ns)\n",
    "a lambda called at once": "y = (lambda: VALUE)()\ny += 1\ny.sum().backward()\n",
    "a coroutine": "import asyncio\nasync def run():\n    y = VALUE\n    await asyncio.sleep(0)\n    y += 1\n    y.sum().backward()\nasyncio.run(run())\n",
    "an async generator": "import asyncio\nasync def values():\n    yield VALUE\nasync def run():\n    async for y in values():\n        y += 1\n        y.sum().backward()\nasyncio.run(run())\n",
}
DISGUISES |= {f"{kind}, {name}": body for kind, bodies in KINDS.items() for name, body in bodies.items()}


@dataclass(slots=True)
class Attacked:
    """What came of all attacks."""

    tried: int = 0
    seen: int = 0
    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.tried} attacks: {len(self.wrong)} wrong; hazards seen in {self.seen} disguises, "
            f"not seen in {len(self.missed)}"
        )


def main(arguments: list[str]) -> int:
    outcome = attack()
    print(outcome)
    for text in [*(f"not seen: {name}" for name in outcome.missed), *outcome.wrong]:
        print(text)
    return 1 if outcome.wrong else 0


def attack() -> Attacked:
    """Every disguise, as the hazard and as its twin."""
    os.environ["GRADSIGHT_STRICT"] = "1"
    outcome = Attacked()
    for name in DISGUISES:
        for kind in VALUES:
            outcome.tried += 1
            attack_once(f"{name}, {kind}", disguised(name, kind), outcome)
    return outcome


def disguised(name: str, kind: str) -> str:
    """The program of one attack."""
    body = DISGUISES[name]
    return (body if body.startswith("from __future__") else HEAD + body).replace("VALUE", VALUES[kind])


def attack_once(name: str, text: str, outcome: Attacked) -> None:
    error = error_of(text)
    source = Source("attack.py", text)
    try:
        loud = [finding for finding in analyze(source).findings if finding.severity in LOUD]
        Analyser().cards(source, 1, text.count("\n") + 1)
        repaired, applied = fix_all(source)
    except Exception as problem:
        outcome.wrong.append(f"{name}: {type(problem).__name__}: {problem}")
        return
    if error and loud:
        outcome.seen += 1
    elif error:
        outcome.missed.append(name)
    elif loud:
        outcome.wrong.append(f"{name}: torch is content, and this is said: {loud[0].code} {loud[0].message}")
    if applied and (after := error_of(repaired)):
        outcome.wrong.append(f"{name}: {applied[0].title} leaves {after}")


def error_of(text: str) -> str:
    """What a program ends with on torch."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, "<attack>", "exec", dont_inherit=True), namespace)
        except Exception as problem:
            return f"{type(problem).__name__}: {problem}".split("\n")[0]
    return ""


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
