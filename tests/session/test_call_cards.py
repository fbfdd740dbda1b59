"""A hover over a call says what this call does: for every operator with several cases, the case that the call meets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
import torch

from gradsight.analysis import Analyser
from gradsight.model import Source
from gradsight.session.documents import Document
from gradsight.session.fact_card import case_sentences, of_call
from gradsight.session.hovering import card_at
from gradsight_dev.fuzz_hovers import HEAD, operator_calls


def hover(text: str, line: int, column: int) -> str:
    lines = text.split("\n")
    document = cast(
        Document,
        SimpleNamespace(
            path="a.py",
            source=Source("a.py", text),
            line_text=lambda n: lines[n - 1],
            report=None,
            settings=None,
            is_fresh=False,
            line_name=lambda n: f"line {n}",
        ),
    )
    cards = Analyser().cards(Source("a.py", text), line, line)
    card = card_at(document, [], line, column, cards)
    return card.markdown if card is not None else ""


def check(line: str, at: str, *said: str, missing: tuple[str, ...] = ()) -> None:
    text = f"{HEAD}{line}\n"
    card = hover(text, 4, line.index(at) + at[0].isalpha())
    for part in said:
        assert part in card, card
    for part in missing:
        assert part not in card, card


def test_where_with_three_arguments_passes_the_gradient_on() -> None:
    check("y = torch.where(x > 0, x, -x)", "where", "saves `condition`", missing=("no gradient flows",))


def test_where_with_a_condition_alone_gives_indices() -> None:
    check("y = torch.where(x > 0)", "where", "no gradient flows")


def test_a_square_keeps_its_base_alone() -> None:
    for line, at in (("y = x ** 2", "**"), ("y = x.pow(2)", "pow")):
        check(line, at, "saves `self`", missing=("exponent` ", "result*", "`other`"))


def test_the_maximum_of_all_keeps_no_other_tensor() -> None:
    check("y = x.max()", "max", "saves", missing=("`other`",))


def test_the_maximum_along_a_dimension_keeps_its_indices() -> None:
    check("y, i = x.max(dim=0)", "max", "the second output is integer")


def test_a_product_with_a_number_keeps_nothing_that_can_be_overwritten() -> None:
    check("y = x * 2", "* 2", "you may overwrite its inputs", missing=("do not overwrite",))


def test_of_what_a_product_copies_it_is_not_said_that_it_is_kept() -> None:
    call = "y = torch.nn.functional.linear({}, torch.ones(4, 4, requires_grad=True))"
    check(call.format("torch.ones(2, 3, 4)"), "linear", "saves `input`", missing=("some calls",))
    check(call.format("torch.ones(2, 3, 4).transpose(0, 1)"), "linear", "some calls")


def test_a_power_of_a_number_speaks_of_the_tensor_on_its_right() -> None:
    check("y = 2 ** x", "** x", "__rpow__", "saves its *output*", missing=("`other`",))


def test_what_is_not_known_is_told_with_its_conditions() -> None:
    text = f"{HEAD}def f(a, b):\n    return torch.where(a, *b)\n"
    card = hover(text, 5, text.split("\n")[4].index("where") + 1)
    assert "otherwise: " in card or "with `" in card


# -- every case of every operator ----------------------------------------------------------------------------------------


GENERATED = list(operator_calls())


def test_there_are_many_operators_with_several_cases() -> None:
    assert len({fact.name for fact, *_ in GENERATED}) >= 100
    assert any(number > 0 for _, number, *_ in GENERATED)


def test_the_hover_at_a_call_of_a_case_says_that_case() -> None:
    """All calls are lines of one program, so that it is analysed once."""
    text = HEAD + "".join(f"y{index} = {call}\n" for index, (_, _, call, _) in enumerate(GENERATED))
    lines = text.split("\n")
    document = cast(
        Document,
        SimpleNamespace(
            path="a.py",
            source=Source("a.py", text),
            line_text=lambda n: lines[n - 1],
            report=None,
            settings=None,
            is_fresh=False,
            line_name=lambda n: f"line {n}",
        ),
    )
    cards = Analyser().cards(Source("a.py", text), 1, len(lines))
    wrong = []
    for index, (fact, number, call, numbers) in enumerate(GENERATED):
        line = index + 4
        column = lines[line - 1].index(f".{fact.name.rpartition('.')[2]}(") + 1
        card = card_at(document, [], line, column, [card for card in cards if card.span.line == line])
        expected = case_sentences(fact, of_call(fact.cases[number], numbers))
        if card is None or any(sentence not in card.markdown for sentence in expected):
            wrong.append(f"{call}: case {number} of {fact.name}: {expected} not in {card and card.markdown}")
    assert not wrong, "\n".join(wrong[:5]) + f"\n{len(wrong)} of {len(GENERATED)}"


@pytest.mark.parametrize("word", ["where", "pow", "max"])
def test_the_examples_are_those_of_torch(word: str) -> None:
    x = torch.rand(3, 3, requires_grad=True)
    made = {"where": lambda: torch.where(x > 0, x, -x), "pow": lambda: x**2, "max": lambda: x.max()}[word]()
    assert made.requires_grad


GRADIENT = """import torch
weight = torch.ones(3, requires_grad=True)
(weight * 2).sum().backward()
first = weight.grad
(weight * 3).sum().backward()
print(first)
"""


def test_the_hover_over_a_gradient_tells_where_it_came_from() -> None:
    card = hover(GRADIENT, 6, 8)
    assert (
        "the gradient of `weight`, taken from `weight.grad` without a copy: made by the backward on line 3"
        in card
    )
    assert "added to or written (line 5)" in card
    own = hover(GRADIENT, 4, 16)
    assert "the gradient of `weight`: made by the backward on line 3" in own


BOTH = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        h = self.fc(x)
        return h.sigmoid()


net = Net()
net(torch.ones(2, 3)).sum().backward()
with torch.no_grad():
    net(torch.ones(2, 3))
"""


def test_a_module_called_for_training_and_evaluation_tells_of_both_callers() -> None:
    card = hover(BOTH, 11, 8)
    assert "called from line 16: not a leaf, requires grad" in card
    assert "called from line 18 (with grad mode off): a leaf, does not require grad" in card
    assert "not certain" not in card


def test_of_calls_that_meet_further_in_those_are_named_that_differ() -> None:
    text = (
        "import torch\nfrom torch import nn\n"
        "class Block(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.linear = nn.Linear(2, 2)\n    def forward(self, x):\n        h = self.linear(x)\n"
        "        return h.tanh()\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.block = Block()\n"
        "    def forward(self, x):\n        return self.block(x)\n"
        "def train():\n    net = Net()\n    net(torch.ones(1, 2)).sum().backward()\n    with torch.no_grad():\n"
        "        net(torch.ones(1, 2))\n"
        "train()\n"
    )
    card = hover(text, 8, 8)
    assert "called from line 18: not a leaf, requires grad" in card
    assert "called from line 20 (with grad mode off): a leaf, does not require grad" in card
    assert "not certain" not in card


def test_an_argument_that_was_left_out_is_not_kept() -> None:
    low = "low = torch.zeros(3); y = x.clamp(min=low)"
    check(low, "clamp", "saves `min` and `self`", missing=("`max`",))
    check(low.replace("min=low", "**{'min': low}"), "clamp", "`min`")
    spread = torch.zeros(3)
    made = torch.ones(3, requires_grad=True).clamp(min=spread)
    assert made.grad_fn is not None
    assert made.grad_fn._saved_max is None  # type: ignore[attr-defined]


NOTHING_SAVED = "not recorded here"


def test_a_call_that_is_not_recorded_saves_nothing() -> None:
    plain = "b = torch.ones(3); y = torch.where(b > 0, b, b)"
    check(plain, "where", NOTHING_SAVED, "saves nothing", missing=("saves `condition`",))
    check("b = torch.ones(3); y = b ** 2", "**", NOTHING_SAVED, missing=("saves `self`",))
    check("with torch.no_grad(): y = x.exp()", "exp", NOTHING_SAVED, missing=("saves its",))
    check("with torch.inference_mode(): y = x.exp()", "exp", NOTHING_SAVED)
    check("with torch.no_grad(): y = torch.nn.functional.relu(x)", "relu", NOTHING_SAVED)
    b = torch.ones(3)
    assert torch.where(b > 0, b, b).grad_fn is None


@pytest.mark.parametrize(
    "line",
    [
        "y = x ** 2",
        "def f(t): return t ** 2",
        "for t in (torch.ones(3), x): y = t ** 2",
        "from lib import t; y = t ** 2",
    ],
)
def test_a_call_that_may_be_recorded_is_told_as_such(line: str) -> None:
    check(line, "**", missing=(NOTHING_SAVED,))
