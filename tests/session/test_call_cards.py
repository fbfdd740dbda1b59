"""A hover over a call says what this call does: for every operator with several cases, the case that the call meets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from gradsight.analysis import Analyser
from gradsight.model import Source
from gradsight.ops.fact import Case, Condition, OpFact
from gradsight.ops.table import load
from gradsight.session.documents import Document
from gradsight.session.fact_card import case_sentences, of_call
from gradsight.session.hovering import card_at

HEAD = "import torch\nimport torch.nn.functional as F\nx = torch.rand(3, 3, requires_grad=True)\n"
VALUES = {
    "tensor": "x",
    "number": "2.0",
    "sequence": "(0, 1)",
    "text": "'mean'",
    "basic": "0",
    "indices": "[0, 1]",
}
FITS = {"tensor": "tensor", "number": "number", "sequence": "sequence", "text": "text"}


def hover(text: str, line: int, column: int) -> str:
    lines = text.split("\n")
    document = cast(
        Document,
        SimpleNamespace(
            path="a.py",
            source=Source("a.py", text),
            line_text=lambda n: lines[n - 1],
            report=None,
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
        check(line, at, "saves `self`", missing=("exponent` ", "result*"))


def test_the_maximum_of_all_keeps_no_other_tensor() -> None:
    check("y = x.max()", "max", "saves", missing=("`other`",))


def test_the_maximum_along_a_dimension_keeps_its_indices() -> None:
    check("y, i = x.max(dim=0)", "max", "result 1 is integer")


def test_a_product_with_a_number_keeps_nothing_that_can_be_overwritten() -> None:
    check("y = x * 2", "* 2", "may be overwritten", missing=("do not overwrite",))


def test_a_power_of_a_number_speaks_of_the_tensor_on_its_right() -> None:
    check("y = 2 ** x", "** x", "__rpow__", "saves its *result*", missing=("`other`",))


def test_what_is_not_known_is_told_with_its_conditions() -> None:
    text = f"{HEAD}def f(a, b):\n    return torch.where(a, *b)\n"
    card = hover(text, 5, text.split("\n")[4].index("where") + 1)
    assert "otherwise: " in card or "with `" in card


# -- every case of every operator ----------------------------------------------------------------------------------------


def calls() -> Iterator[tuple[OpFact, int, str, tuple[str, ...]]]:
    """For each case that plain arguments can meet: the call, and the arguments that are numbers in it."""
    table = load()
    for known in table.names():
        fact = table.find(known)
        assert fact is not None
        room, _, name = fact.name.rpartition(".")
        if (
            len(fact.cases) < 2
            or room not in ("torch", "Tensor")
            or not name.isidentifier()
            or name[0] == "_"
        ):
            continue
        if fact.note or any(parameter.startswith("*") for parameter in fact.parameters):
            continue
        for number, case in enumerate(fact.cases):
            given = arguments(fact, case)
            if given is None or first_case(fact, given) != number:
                continue
            yield (
                fact,
                number,
                spelled(fact, given),
                tuple(key for key, value in given.items() if value[0] != "tensor"),
            )


def arguments(fact: OpFact, case: Case) -> dict[str, tuple[str, str]] | None:
    """Kinds and texts of arguments that meet the conditions of a case; None where that takes more than a plain value."""
    given: dict[str, tuple[str, str]] = {}
    for name in fact.parameters:
        conditions = [each for each in case.when if each.argument == name]
        if not conditions:
            if name not in fact.defaults:
                given[name] = ("tensor", "x")
            continue
        chosen = None
        for each in conditions:
            if each.kind in FITS:
                chosen = (each.kind, VALUES[each.kind])
            elif each.kind == "equals":
                chosen = kind_of(each.value)
            elif each.kind == "none":
                chosen = ("none", "")
        if chosen is None or any(not holds(each, chosen) for each in conditions):
            return None
        if chosen[0] != "none":
            given[name] = chosen
    if any(each.argument not in fact.parameters for each in case.when):
        return None
    return given if given.get("self", given.get("input", ("tensor",)))[0] == "tensor" else None


def kind_of(value: str) -> tuple[str, str]:
    return ("text" if value[:1] in "'\"" else "none" if value == "None" else "number", value)


def holds(condition: Condition, value: tuple[str, str]) -> bool:
    kind, text = value
    if condition.kind in ("equals", "not"):
        same = text == condition.value or (kind == "number" and number_of(text) == number_of(condition.value))
        return same if condition.kind == "equals" else not same
    return condition.kind == kind


def number_of(text: str) -> Any:
    return (
        {"True": True, "False": False}.get(text)
        if text in ("True", "False")
        else float(text)
        if is_float(text)
        else text
    )


def is_float(text: str) -> bool:
    return re.fullmatch(r"-?[0-9.]+(e-?[0-9]+)?", text) is not None


def first_case(fact: OpFact, given: dict[str, tuple[str, str]]) -> int | None:
    """The first case whose conditions these arguments meet; None where one cannot be told by kinds alone."""
    for number, case in enumerate(fact.cases):
        if any(each.kind in ("rank", "integral", "basic", "indices") for each in case.when):
            return None
        values = [
            (each, given.get(each.argument) or kind_of(fact.defaults.get(each.argument, "None")))
            for each in case.when
        ]
        if all(holds(each, value) for each, value in values):
            return number
    return None


def spelled(fact: OpFact, given: dict[str, tuple[str, str]]) -> str:
    room, _, name = fact.name.rpartition(".")
    named = [f"{key}={text}" for key, (_, text) in given.items() if key not in ("self", "input")]
    if room == "Tensor":
        return f"x.{name}({', '.join(named)})"
    first = [text for key, (_, text) in given.items() if key in ("self", "input")]
    return f"torch.{name}({', '.join([*first, *named])})"


GENERATED = list(calls())


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
    assert "called from line 18 (without grad mode): a leaf, does not require grad" in card
    assert "not certain" not in card
