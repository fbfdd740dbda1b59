"""What is said of a program does not depend on where its loop stands, and little of it on what its variables are called."""

from __future__ import annotations

import pytest

from gradsight_dev.opened import CLOSED, OPEN, compare, without_names

pytestmark = pytest.mark.facts

OF_SECOND_NAMES = {"GS107", "GS514"}
"""That one memory has two names is judged by the names of one function: what was meant by a parameter is another question."""


@pytest.mark.parametrize("form", CLOSED)
def test_a_loop_in_a_function_or_an_object_is_judged_as_it_was(form: str) -> None:
    found = compare(form, with_names=False)
    assert found.programs > 300
    assert {
        code for codes in [*found.lost.values(), *found.new.values()] for code in codes
    } <= OF_SECOND_NAMES


@pytest.mark.parametrize("form", OPEN)
def test_what_is_found_without_the_other_half_is_found_without_names(form: str) -> None:
    found = compare(form, with_names=True)
    assert found.findings > 70
    assert sum(map(len, found.lost.values())) <= found.findings * 0.1
    assert sum(map(len, found.new.values())) <= found.programs * 0.02


def test_names_say_nothing_afterwards() -> None:
    text = without_names("model = make(lr=1)\nmodel.step()\nfor x in model: print(x)")
    assert text == "v0 = make(lr=1)\nv0.step()\nfor v1 in v0:\n    print(v1)\n"
