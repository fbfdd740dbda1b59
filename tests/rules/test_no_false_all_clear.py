"""The hint that a write in place is safe is given only where nothing else can see the old value."""

from __future__ import annotations

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source

HEAD = "import torch\nfrom torch import nn\nx = torch.ones(3, requires_grad=True)\ny = x * 2\n"
TAIL = "y.sum().backward()\n"
NET = "import torch\nfrom torch import nn\nnet = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True))\n"
RUN = "net(torch.ones(2, 3)).sum().backward()\n"
SAFE = {
    "nothing holds it": HEAD + "y += 1\n" + TAIL,
    "only its shape was asked for": HEAD + "print(y.shape, len(y))\ny += 1\n" + TAIL,
    "only its kind was asked for": HEAD
    + "print(y.device, y.dtype, repr(y), y.type(), y.size(), y.storage_type())\ny += 1\n"
    + TAIL,
    "it was joined with others before": HEAD
    + "z = torch.cat([y, y])\ny += 1\n(z.sum() + y.sum()).backward()\n",
    "a number of a library scaled it": HEAD + "import math\nz = y * math.pi\ny += 1\n" + TAIL,
    "a decorator that holds nothing": HEAD
    + "@torch.compile\ndef act(h):\n    h += 1\n    return h\nact(y).sum().backward()\n",
    "it is stored afterwards": HEAD + "kept = []\ny += 1\nkept.append(y)\n" + TAIL,
    "a layer without hooks": NET + RUN,
}
DOUBTFUL = {
    "an unknown call got it": HEAD + "from lib import keep\nkeep(y)\ny += 1\n" + TAIL,
    "an unknown method got it": HEAD + "from lib import writer\nwriter.add('y', y)\ny += 1\n" + TAIL,
    "an unknown factor may require grad": HEAD
    + "from lib import scale\nz = scale * y\ny += 1\nz.sum().backward()\n",
    "an unknown matrix may require grad": HEAD
    + "from lib import scale\nz = y @ scale\ny += 1\nz.sum().backward()\n",
    "an unknown table was asked for it": HEAD + "from lib import table\nz = table[y]\ny += 1\n" + TAIL,
    "an unknown decorator sees it": HEAD
    + "from lib import traced\n@traced\ndef act(h):\n    h += 1\n    return h\nact(y).sum().backward()\n",
    "a thread of an unknown function got it": HEAD
    + "import threading\nfrom lib import work\nthreading.Thread(target=work, args=(y,)).start()\ny += 1\n"
    + TAIL,
    "a thread got it by name": HEAD
    + "import threading\nfrom lib import work\nthreading.Thread(target=work, kwargs={'y': y}).start()\ny += 1\n"
    + TAIL,
    "an unknown call got a view": HEAD + "from lib import keep\nkeep(y.view(3))\ny += 1\n" + TAIL,
    "an unknown call got it in a list": HEAD + "from lib import keep\nkeep([y], {'a': y})\ny += 1\n" + TAIL,
    "an unknown object holds it": HEAD + "from lib import box\nbox.last = y\ny += 1\n" + TAIL,
    "a list holds it": HEAD + "kept = [y]\ny += 1\n" + TAIL + "print(kept)\n",
    "a dict of tuples holds it": HEAD + "kept = {'y': (y, 1)}\ny += 1\n" + TAIL + "print(kept)\n",
    "another name is read later": HEAD + "old = y\ny += 1\nprint(old)\n" + TAIL,
    "each entry is the same tensor": HEAD
    + "kept = []\nfor _ in range(3):\n    y += 1\n    kept.append(y)\nprint(kept[0])\n"
    + TAIL,
    "a window of it is read later": HEAD.replace("x * 2", "x.exp()")
    + "(z,) = torch.broadcast_tensors(y)\nz += 1\n"
    + TAIL,
    "what unknown code gave may be itself": HEAD.replace("x * 2", "x.exp()")
    + "z = torch.atleast_1d(y)\nz += 1\n"
    + TAIL,
    "what was applied before is one of several": """
import torch
from torch import nn
ACTIVATIONS = {"gelu": nn.GELU, "sigmoid": nn.Sigmoid}
class Dense(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.wi = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.1, inplace=True)
        self.act = ACTIVATIONS[config.act]()
    def forward(self, x):
        return self.drop(self.act(self.wi(x)))
""",
    "a hook holds the input": NET
    + "kept = []\nnet[1].register_forward_hook(lambda module, args, out: kept.append(args[0]))\n"
    + RUN,
    "a hook holds all inputs": NET
    + "kept = []\ndef keep(module, args):\n    kept.append(args)\nnet[1].register_forward_pre_hook(keep)\n"
    + RUN,
    "a hook is not known": NET + "import lib\nnet[1].register_forward_hook(lib.hook)\n" + RUN,
    "unknown code may have put hooks on it": NET + "import lib\nlib.watch(net)\n" + RUN,
}

MODULE = """import torch
from torch import nn
class Block(nn.Module):
    def __init__(self, width{parameters}):
        super().__init__()
        self.layer = nn.Linear(width, width)
        {made}
    def forward(self, x):
        h = self.layer(x)
        {way}
        h += x
        return h
"""
SETTLED = {
    "no parameter has a default": ("", "self.act = nn.Identity()", "h = self.act(h)"),
    "a default is a size": (", times=2", "self.act = nn.Linear(width, times * width)", "h = h * 2"),
    "an option of a layer": (
        ", bias=True",
        "self.act = nn.Linear(width, width, bias=bias)",
        "h = self.act(h)",
    ),
    "a mode that decides about the write itself": (
        "",
        "pass",
        "if self.training:\n            h += 1\n            return h",
    ),
}
SETTLED_BY_DEFAULT = {
    "a default is made or not": (
        ", act=None",
        "self.act = act or nn.Identity()",
        "h = self.act(h)",
        "Block(3, nn.Sigmoid())",
    ),
    "a default is called": (
        ", act=nn.Identity",
        "self.act = act()",
        "h = self.act(h)",
        "Block(3, nn.Sigmoid)",
    ),
    "an arm of `__init__`": (
        ", gated=False",
        "self.act = nn.Sigmoid() if gated else nn.Identity()",
        "h = self.act(h)",
        "Block(3, True)",
    ),
    "an arm of `forward`": (
        ", gated=False",
        "self.gated = gated",
        "if self.gated:\n            h = h.exp()",
        "Block(3, True)",
    ),
    "a table": (
        ", act='no'",
        "self.act = {'no': nn.Identity, 'yes': nn.Sigmoid}[act]()",
        "h = self.act(h)",
        "Block(3, 'yes')",
    ),
    "evaluation": (
        "",
        "pass",
        "h = h.exp()\n        if self.training:\n            h = h * 2",
        "Block(3).eval()",
    ),
}


@pytest.mark.parametrize("name", SETTLED)
def test_a_write_in_a_class_that_is_always_made_alike_is_called_safe(name: str) -> None:
    parameters, made, way = SETTLED[name]
    assert "GS190" in said(MODULE.format(parameters=parameters, made=made, way=way))


@pytest.mark.parametrize("name", SETTLED_BY_DEFAULT)
def test_a_write_that_only_a_default_makes_harmless_is_not_called_safe(name: str) -> None:
    parameters, made, way, other = SETTLED_BY_DEFAULT[name]
    program = MODULE.format(parameters=parameters, made=made, way=way)
    assert "GS190" not in said(program)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        exec(program + f"{other}(torch.ones(2, 3)).sum().backward()\n", {"__name__": "program"})


def said(program: str) -> list[str]:
    return [finding.code for finding in analyze(Source("program.py", program)).findings]


@pytest.mark.parametrize("name", SAFE)
def test_a_harmless_write_is_called_safe(name: str) -> None:
    assert said(SAFE[name]) == ["GS190"]


@pytest.mark.parametrize("name", DOUBTFUL)
def test_a_write_that_somebody_may_see_is_not_called_safe(name: str) -> None:
    assert "GS190" not in said(DOUBTFUL[name])
