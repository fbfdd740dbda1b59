"""Containers of modules: what is not known in them is a module, and a long chain is followed to its last layer."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradsight.analysis import Analyser
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session.reading import reader
from gradsight.session.workspace import WorkspaceFinder
from tests.interp.checking import check

NET = """
class Net(nn.Module):
    def __init__(self, block):
        super().__init__()
        self.first = {}
        self.last = nn.Linear(4, 4)
    def forward(self, x):
        {}
        {}
        return self.last(x)
"""
APPLIED = "x = self.first(x)"
IN_TURN = "for part in self.first: x = part(x)"


@pytest.mark.parametrize(
    ("parts", "applied"),
    [
        ("nn.Sequential(block(4), block(4))", APPLIED),
        ("nn.Sequential(nn.Linear(4, 4), block(4))", APPLIED),
        ("nn.ModuleList([block(4), block(4)])", IN_TURN),
        ("Chain(block)", APPLIED),
    ],
)
def test_an_unknown_part_of_a_container_passes_the_graph_on(parts: str, applied: str) -> None:
    chain = """
class Chain(nn.Sequential):
    def __init__(self, block):
        super().__init__()
        self.add_module("block", block(4))
"""
    check(chain + NET.format(parts, applied, "x = torch.tensor(x)  # GS201"))
    check(chain + NET.format(parts, applied, "x = x.clone()"))
    # It may have kept its result, or not.
    check(chain + NET.format(parts, applied, "x += 1"))


LONG = """
class Chain(nn.Sequential):
    def forward(self, x):
        for part in self:
            if getattr(part, "is_wide", False) and x.dtype == torch.float16:
                x = part(x.float())
            else:
                x = part(x)
        return x
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = Chain({} {})
    def forward(self, x):
        y = self.parts(x)
        y.clamp_(min=0){}
        return y
"""
BLOCK = "nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU()," * 6


def test_a_long_chain_of_layers_is_followed_to_the_last_one() -> None:
    check(LONG.format(BLOCK, "nn.Linear(4, 4), nn.BatchNorm1d(4)", ""))
    check(LONG.format(BLOCK, "nn.Linear(4, 4), nn.ReLU()", "  # GS101"))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("{}", "Mapping"),
        ("{'a': 1}", "MutableMapping"),
        ("[1]", "Sequence"),
        ("(1, 2)", "Hashable"),
        ("'text'", "Sequence"),
        ("3", "Hashable"),
        ("{1}", "Set"),
        ("print_it", "Callable"),
        ("torch.ones(2)", "Iterable"),
    ],
)
def test_a_value_is_what_it_can_do(value: str, kind: str) -> None:
    check(f"""
from collections.abc import {kind}
def print_it(x):
    print(x)
y = torch.ones(3, requires_grad=True).exp()
if isinstance({value}, {kind}):
    y += 1  # GS101
y.sum().backward()
""")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("[1]", "Mapping"),
        ("{}", "Sequence"),
        ("[1]", "Hashable"),
        ("3", "Iterable"),
        ("torch.ones(2)", "Sequence"),
    ],
)
def test_a_value_is_not_what_it_cannot_do(value: str, kind: str) -> None:
    check(f"""
from collections.abc import {kind}
y = torch.ones(3, requires_grad=True).exp()
if isinstance({value}, {kind}):
    y += 1
y.sum().backward()
""")


def test_a_container_that_was_not_made_to_its_end_is_no_identity(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(
        "import kinds\nfrom torch import nn\n\nclass Chain(nn.Sequential):\n"
        "    def __init__(self, kind):\n        super().__init__()\n"
        "        if kinds.is_odd(kind):\n            pass\n        else:\n            raise ValueError(kind)\n"
        "        raise ValueError(kind)\n"
    )
    source = Source(
        str(tmp_path / "net.py"),
        "import torch\nfrom torch import nn\nfrom parts import Chain\n\nclass Net(nn.Module):\n"
        "    def __init__(self, kind):\n        super().__init__()\n        self.act, self.chain = nn.ReLU(), Chain(kind)\n"
        "    def forward(self, x):\n        y = self.chain(self.act(x))\n        y += 1\n        return y\n",
    )
    finder = WorkspaceFinder(str(tmp_path), reader())
    assert Analyser().analyze(source, Settings(hints=True), finder).findings == ()


BY_KEYWORD = """
net = {}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    x, y = torch.randn(5, 3), torch.rand(5, 1)
    out = net(input=x){}
    loss = F.mse_loss(input=out, target=y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "net",
    ["nn.Linear(3, 1)", "nn.Sequential(nn.Linear(3, 4), nn.Flatten(), nn.Linear(4, 1))", "nn.PReLU(1)"],
)
def test_an_input_given_by_its_name_is_what_a_layer_is_applied_to(net: str) -> None:
    check(BY_KEYWORD.format(net, ""))
    check(BY_KEYWORD.format(net, ".detach()  # GS203"))


def test_a_loss_given_its_target_by_name_and_first_has_the_shape_of_the_target() -> None:
    check("""
        net = nn.Linear(3, 4)
        out = net(input=torch.randn(5, 3))
        nn.CrossEntropyLoss(reduction="none")(target=torch.ones(5, dtype=torch.long), input=out).sum().backward()
        nn.CrossEntropyLoss(reduction="none")(target=torch.ones(5, dtype=torch.long), input=net(torch.randn(5, 3))).backward()  # GS401
    """)


def test_empty_module_holds_what_is_set_on_it() -> None:
    check("""
    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.up = nn.ModuleList()
            for _ in range(2):
                level = nn.Module()
                level.block = nn.ModuleList([nn.Linear(2, 2)])
                self.up.insert(0, level)
            self.mid = nn.Module()
            self.mid.block = nn.Linear(2, 2)
            self.out = nn.Linear(2, 2)

        def forward(self, x):
            for level in reversed(range(2)):
                x = self.up[level].block[0](x)
            return self.out(self.mid.block(x))

    def train(loader):
        net = Decoder()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for x in loader:
            opt.zero_grad()
            net(x).sum().backward()
            opt.step()

    def train_rest(loader):
        net = Decoder()
        opt = torch.optim.SGD(net.out.parameters(), lr=0.1)  # GS512
        for x in loader:
            opt.zero_grad()
            net(x).sum().backward()
            opt.step()
    """)
