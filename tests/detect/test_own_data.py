"""Data that comes back to the parameter it was taken from takes no gradient away from it."""

from __future__ import annotations

import pytest

from gradsight.interp.tensors.tensor_attributes import is_own_data
from gradsight.model.tensors import Cut
from tests.detect.staging import Stage


@pytest.mark.parametrize(
    ("label", "stands_in", "is_own"), [("q", True, True), ("p", True, False), ("q", False, False)]
)
def test_parameters_that_stand_for_those_of_one_module_are_not_told_apart(
    label: str, stands_in: bool, is_own: bool
) -> None:
    stage = Stage("kept = w.data.clone()\nv.data = kept")
    w = stage.tensor("w.data", "q", is_parameter=True, requires_grad=True, leaf_made=True)
    v = stage.tensor("v.data", label, is_parameter=True, requires_grad=True, leaf_made=True)
    for one in (w, v):
        one.attributes = {"<stand in>": True} if stands_in else None
    cut = Cut("data", "data", stage.at("w.data"), w, 1)
    assert is_own_data(cut, w)
    assert is_own_data(cut, v) is is_own
