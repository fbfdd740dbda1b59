"""Parts of a class that are given wherever it is made: the default is no evidence of what it is made with."""

from __future__ import annotations

from gradsight.analysis import Analyser
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from tests.interp.checking import check

BLOCKS = """
class Bottleneck(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer, self.act = nn.Linear(width, width), nn.ReLU()
    def forward(self, x):
        return self.act(self.layer(x) + x)
class Dark(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)
    def forward(self, x):
        return self.layer(x) + x
class Stage(nn.Module):
    def __init__(self, width, block=Bottleneck):
        super().__init__()
        self.down, self.block = nn.Linear(width, width), block(width)
    def forward(self, x):
        x = self.block(self.down(x))
        x += 1{}
        return x
"""
MAKER = """
STAGES = dict(dark=(Stage, Dark))
def build(kind):
    stage, part = STAGES[kind]
    return stage(8, block=part)
"""
FOUND = "  # GS101"


def test_a_default_that_every_maker_replaces_is_not_assumed() -> None:
    check(BLOCKS.format("") + MAKER)


def test_a_default_is_assumed_where_nothing_gives_the_part() -> None:
    check(BLOCKS.format(FOUND))
    check(BLOCKS.format(FOUND) + MAKER.replace(", block=part", ""))


def test_a_default_is_assumed_where_a_maker_may_mean_it() -> None:
    check(BLOCKS.format(FOUND) + MAKER.replace("block=part", "block=Bottleneck"))
    check(BLOCKS.format(FOUND) + MAKER.replace("block=part", "block=PARTS['bottleneck']"))
    check(
        BLOCKS.format(FOUND)
        + MAKER.replace("(kind)", "(kind, part=Bottleneck)").replace("stage, part", "stage, _")
    )
    named = MAKER.replace(
        "    return", "    if kind == 'plain':\n        part = pick('bottleneck')\n    return"
    )
    check(BLOCKS.format(FOUND) + named)


def test_a_class_that_is_called_by_its_name_or_derived_from_has_its_defaults() -> None:
    check(BLOCKS.format(FOUND) + MAKER + "def plain(width):\n    return Stage(width)\n")
    check(BLOCKS.format(FOUND) + MAKER + "class Longer(Stage):\n    pass\n")


def test_what_a_maker_gives_is_read_again_after_an_edit() -> None:
    analyser = Analyser()
    head = "import torch\nfrom torch import nn\n" + BLOCKS.format("")
    for maker, codes in ((MAKER, []), ("", ["GS101"]), (MAKER, [])):
        found = analyser.analyze(Source("made.py", head + maker), Settings())
        assert [one.code for one in found.findings] == codes
