"""The table of in-place methods, held against torch."""

from __future__ import annotations

import pytest
import torch

from gradsight.fixes.forms import BY_CLONE, FUNCTIONS, INPLACE, OPERATORS, WITH_TWIN

# Methods with an underscore at the end that do not write a value.
NO_WRITES = {
    "apply_", "as_strided_", "conj_physical_", "map2_", "map_", "requires_grad_", "resize_", "resize_as_",
    "resize_as_sparse_", "set_", "share_memory_", "sparse_resize_", "sparse_resize_and_clear_",
}  # fmt: skip
ONE_ARGUMENT = (torch.tensor([0.5, -1.5, 2.0]),)


def test_every_in_place_method_of_torch_is_known() -> None:
    methods = {name for name in dir(torch.Tensor) if name.endswith("_") and not name.startswith("_")}
    assert methods - INPLACE == NO_WRITES
    assert methods >= INPLACE


@pytest.mark.parametrize("method", sorted(WITH_TWIN))
def test_a_twin_gives_the_same_value_and_type(method: str) -> None:
    tensor = torch.tensor([0.25, 0.5, 0.75])
    for arguments in ((), ONE_ARGUMENT, (2,)):
        changed = tensor.clone()
        try:
            getattr(changed, method)(*arguments)
            twin = getattr(tensor, method[:-1])(*arguments)
        except (RuntimeError, TypeError, IndexError):
            continue
        assert twin.dtype == changed.dtype
        assert torch.allclose(twin, changed, equal_nan=True)
        return
    assert hasattr(torch.Tensor, method[:-1])


def test_what_is_run_on_a_clone_has_no_twin_of_its_type() -> None:
    assert not WITH_TWIN & BY_CLONE


@pytest.mark.parametrize("method", sorted(OPERATORS))
def test_an_operator_does_what_the_method_does(method: str) -> None:
    left, right = torch.tensor([1.0, 2.0]), torch.tensor([4.0, 8.0])
    assert torch.equal(getattr(left.clone(), method)(right), eval(f"left {OPERATORS[method]} right"))


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_a_function_has_a_twin(function: str) -> None:
    assert any(
        hasattr(module, function) and hasattr(module, function[:-1])
        for module in (torch, torch.nn.functional)
    )
