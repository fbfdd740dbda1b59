"""What decides whether a write is safe, told by the facts alone: no torch is run here."""

from __future__ import annotations

import pytest

from gradsight.ops.fact import Case, Condition
from gradsight.ops.table import shipped


def check(name: str, keeps: set[str], requiring: str = "", **options: str) -> None:
    """The operator keeps exactly these tensors when `requiring` (or any argument) requires grad."""
    case = case_of(name, **options)
    kept = {save.what for save in case.saves if not requiring or not save.needs or requiring in save.needs}
    kept -= {argument for argument, kind in options.items() if kind == "number"}
    assert kept == keeps, f"{name} {options}"


def case_of(name: str, **options: str) -> Case:
    """The case for arguments given by kind (`other="number"`) or by value (`inplace="True"`)."""
    fact = shipped().find(name)
    assert fact is not None, name
    for case in fact.cases:
        if all(holds(each, options, {**fact.option_defaults, **fact.defaults}) for each in case.when):
            return case
    raise AssertionError(f"no case of {name} fits {options}")


def holds(condition: Condition, options: dict[str, str], defaults: dict[str, str]) -> bool:
    given = options.get(condition.argument)
    if condition.kind == "rank":
        return False
    if condition.kind in ("equals", "not"):
        value = given or defaults.get(condition.argument, "None")
        value = repr(float(value)) if value.replace(".", "", 1).isdigit() else value
        return (value == condition.value) == (condition.kind == "equals")
    if given is None:
        return condition.kind == "none" and defaults.get(condition.argument, "None") == "None"
    return given == condition.kind


def test_exp_keeps_its_result_so_writing_it_raises() -> None:
    check("torch.exp", {"result"})
    assert "self" in case_of("Tensor.__imul__", other="number").writes


def test_times_a_number_keeps_no_tensor_of_the_user_so_writing_the_result_is_exact() -> None:
    check("Tensor.__mul__", set(), "self", other="number")


def test_a_power_keeps_its_base_and_a_sum_keeps_nothing() -> None:
    check("Tensor.__pow__", {"self"}, other="number")
    check("Tensor.__add__", set())


def test_a_product_keeps_one_factor_only_for_the_gradient_of_the_other() -> None:
    check("Tensor.__mul__", {"other"}, "self", other="tensor")
    check("Tensor.__mul__", {"self"}, "other", other="tensor")


def test_a_linear_layer_keeps_its_weight_only_if_its_input_requires_grad() -> None:
    check("nn.Linear", {"self.weight"}, "input")
    check("nn.Linear", {"input"}, "self.weight")
    check("nn.Linear", set(), "self.bias")
    assert case_of("optim.SGD").writes == ("params",)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "exp", "sqrt", "softmax", "relu", "log_softmax"])
def test_these_keep_their_result_and_leave_their_input_free(name: str) -> None:
    check(f"torch.{name}", {"result"})


@pytest.mark.parametrize("name", ["sin", "cos", "pow"])
def test_these_keep_their_input(name: str) -> None:
    check(f"torch.{name}", {"input"}, exponent="number")


def test_gelu_and_matmul_keep_inputs() -> None:
    check("nn.functional.gelu", {"input"})
    check("torch.matmul", {"input", "other"})


@pytest.mark.parametrize("name", ["add", "sub", "sum", "clone", "cat"])
def test_these_keep_nothing_and_run_backward_twice(name: str) -> None:
    check(f"torch.{name}", set())
    assert case_of(f"torch.{name}").holds_saved == "never"


def test_relu_in_place_spoils_a_sigmoid_but_not_a_linear_layer() -> None:
    in_place = case_of("nn.ReLU", inplace="True")
    assert in_place.writes == ("input",)
    check("nn.Linear", {"input", "self.weight"})
    check("nn.ReLU", {"result"}, inplace="True")
    check("torch.sigmoid", {"result"})


def test_dropout_in_place_spoils_an_exp() -> None:
    assert case_of("nn.functional.dropout", inplace="True").writes == ("input",)
    check("torch.exp", {"result"})


@pytest.mark.parametrize(
    "name", ["Tensor.view", "Tensor.__getitem__", "Tensor.T", "Tensor.transpose", "Tensor.select"]
)
def test_a_view_shares_storage_and_version_with_its_base(name: str) -> None:
    (output,) = case_of(name, index="basic").outputs
    assert (output.alias, output.aliased, output.shares_version) == ("self", "always", True)


def test_detach_is_noticed_and_data_is_not() -> None:
    (detached,), (data,) = case_of("Tensor.detach").outputs, case_of("Tensor.data").outputs
    assert (detached.alias, detached.shares_version, detached.gradient) == ("self", True, "none")
    assert (data.alias, data.shares_version, data.gradient) == ("self", False, "none")


def test_numpy_shares_memory_unnoticed_and_refuses_a_tensor_that_requires_grad() -> None:
    case = case_of("Tensor.numpy")
    assert (case.returns, case.refuses) == ("array", ("self",))
    assert (case.outputs[0].alias, case.outputs[0].shares_version) == ("self", False)


@pytest.mark.parametrize("name", ["unbind", "chunk", "split"])
def test_views_made_together_refuse_writes(name: str) -> None:
    case = case_of(f"Tensor.{name}")
    assert case.sequence
    assert case.outputs[0].one_of_many


def test_an_expanded_tensor_refuses_writes() -> None:
    assert case_of("Tensor.expand").outputs[0].overlapping


@pytest.mark.parametrize("name", ["round", "floor", "sign", "ceil", "trunc", "fix"])
def test_rounding_has_a_gradient_that_is_always_zero(name: str) -> None:
    assert case_of(f"torch.{name}").outputs[0].gradient == "zero"


@pytest.mark.parametrize("name", ["torch.argmax", "Tensor.__gt__", "torch.isnan", "Tensor.__eq__"])
def test_choices_and_comparisons_have_no_gradient(name: str) -> None:
    (output,) = case_of(name, other="tensor").outputs
    assert output.gradient == "none"
    assert output.dtype in ("int", "bool")


def test_backward_twice_is_refused_after_a_product_and_not_after_a_sum() -> None:
    assert case_of("Tensor.__mul__", other="number").holds_saved == "always"
    assert case_of("Tensor.__add__", other="number").holds_saved == "never"


def test_a_cast_that_changes_nothing_returns_the_tensor_itself() -> None:
    for name in ("Tensor.to", "Tensor.float", "Tensor.double"):
        assert case_of(name).outputs[0].same == "sometimes"


def test_a_fused_step_is_not_noticed() -> None:
    assert not case_of("optim.Adam", fused="True").bumps_version
    assert case_of("optim.Adam").bumps_version


def test_torch_tensor_cuts_the_graph_and_makes_a_leaf() -> None:
    (output,) = case_of("torch.tensor", data="tensor").outputs
    assert (output.gradient, output.leaf, output.alias) == ("none", True, "")


def test_division_keeps_what_each_operand_needs() -> None:
    check("Tensor.__truediv__", set(), "self", other="number")
    check("Tensor.__truediv__", {"other"}, "self", other="tensor")
    check("Tensor.__truediv__", {"self", "other"}, "other", other="tensor")
    check("Tensor.__rpow__", {"result", "self"}, "self", other="number")
    check("Tensor.__pow__", {"self", "other", "result"}, "other", other="tensor")


def test_batch_norm_writes_its_statistics_unnoticed_while_training() -> None:
    training = case_of("nn.BatchNorm1d", training="True")
    assert {"self.running_mean", "self.running_var"} <= set(training.writes)
    assert set(training.quiet) == {"self.running_mean", "self.running_var"}
    assert case_of("nn.BatchNorm1d", training="False").writes == ()


def test_in_place_forms_keep_their_new_content_or_a_copy_of_the_old() -> None:
    check("Tensor.exp_", {"result"})
    check("Tensor.sigmoid_", {"result"})
    check("Tensor.mul_", {"other"}, "self", other="tensor")
    check("Tensor.mul_", set(), "other", other="tensor")
    check("Tensor.masked_fill_", {"mask"})
    check("Tensor.copy_", set())
    check("Tensor.zero_", set())


def test_selections_keep_their_indices() -> None:
    check("torch.where", {"condition"}, input="tensor", other="tensor")
    check("torch.masked_fill", {"mask"})
    check("torch.index_select", {"index"}, "input")
    check("Tensor.__getitem__", {"index"}, index="tensor")
    check("torch.max", {"result.1"}, dim="number")


def test_initializers_may_write_a_leaf() -> None:
    case = case_of("nn.init.xavier_uniform_")
    assert case.writes == ("tensor",)
    assert case.no_grad
