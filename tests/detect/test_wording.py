"""What a sentence quotes of the user's code: whole where it is short, and else the end that says what is written."""

from __future__ import annotations

import ast

import pytest

from gradsight.detect.wording import LONGEST, code_of
from gradsight.model.rule import quoted
from gradsight.rules.parameters_not_optimized import _listed


@pytest.mark.parametrize(
    ("code", "quoted"),
    [
        ("x.add_(1)", "x.add_(1)"),
        ("self.linear.weight.data.mul_(2)", "….weight.data.mul_(2)"),
        ("values.copy_(some_other_long_value)", "values.copy_(…)"),
        ("F.relu(self.some.long.name, inplace=True)", "F.relu(…)"),
        ("a_very_long_name_indeed_here.zero_()", "….zero_()"),
        ("really_long_function_name_of_the_user(x)", "really_long_function_name…(…)"),
    ],
)
def test_a_call_is_quoted_by_the_end_that_fits(code: str, quoted: str) -> None:
    assert code_of(ast.parse(code, mode="eval").body) == quoted
    assert len(quoted) <= LONGEST + len("(…)")


def test_the_parameters_of_an_unknown_module_are_spoken_of_as_the_module() -> None:
    assert quoted("self.policy's parameters") == "`self.policy`"


def test_several_parameters_are_quoted_one_by_one() -> None:
    assert _listed("self.fc, self.crf") == "`self.fc` and `self.crf`"
    assert _listed("self.fc, self.crf, a, b") == "`self.fc`, `self.crf` and 2 more"
