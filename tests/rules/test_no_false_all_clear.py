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
    "it was joined with others before": HEAD
    + "z = torch.cat([y, y])\ny += 1\n(z.sum() + y.sum()).backward()\n",
    "it is stored afterwards": HEAD + "kept = []\ny += 1\nkept.append(y)\n" + TAIL,
    "a layer without hooks": NET + RUN,
}
DOUBTFUL = {
    "an unknown call got it": HEAD + "from lib import keep\nkeep(y)\ny += 1\n" + TAIL,
    "an unknown method got it": HEAD + "from lib import writer\nwriter.add('y', y)\ny += 1\n" + TAIL,
    "an unknown call got a view": HEAD + "from lib import keep\nkeep(y.view(3))\ny += 1\n" + TAIL,
    "an unknown call got it in a list": HEAD + "from lib import keep\nkeep([y], {'a': y})\ny += 1\n" + TAIL,
    "an unknown object holds it": HEAD + "from lib import box\nbox.last = y\ny += 1\n" + TAIL,
    "a list holds it": HEAD + "kept = [y]\ny += 1\n" + TAIL + "print(kept)\n",
    "a dict of tuples holds it": HEAD + "kept = {'y': (y, 1)}\ny += 1\n" + TAIL + "print(kept)\n",
    "another name is read later": HEAD + "old = y\ny += 1\nprint(old)\n" + TAIL,
    "each entry is the same tensor": HEAD
    + "kept = []\nfor _ in range(3):\n    y += 1\n    kept.append(y)\nprint(kept[0])\n"
    + TAIL,
    "a hook holds the input": NET
    + "kept = []\nnet[1].register_forward_hook(lambda module, args, out: kept.append(args[0]))\n"
    + RUN,
    "a hook holds all inputs": NET
    + "kept = []\ndef keep(module, args):\n    kept.append(args)\nnet[1].register_forward_pre_hook(keep)\n"
    + RUN,
    "a hook is not known": NET + "import lib\nnet[1].register_forward_hook(lib.hook)\n" + RUN,
    "unknown code may have put hooks on it": NET + "import lib\nlib.watch(net)\n" + RUN,
}


def said(program: str) -> list[str]:
    return [finding.code for finding in analyze(Source("program.py", program)).findings]


@pytest.mark.parametrize("name", SAFE)
def test_a_harmless_write_is_called_safe(name: str) -> None:
    assert said(SAFE[name]) == ["GS190"]


@pytest.mark.parametrize("name", DOUBTFUL)
def test_a_write_that_somebody_may_see_is_not_called_safe(name: str) -> None:
    assert "GS190" not in said(DOUBTFUL[name])
