"""What users reach for first is in the table, with the facts that matter: operators, in-place forms, modules, updates."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from gradsight.ops.fact import NOT_TENSORS, Case, OpFact
from gradsight.ops.table import shipped
from tests.ops.usual import usual_case

ARITHMETIC = "add sub mul truediv floordiv mod pow".split()
BITWISE = "and or xor lshift rshift".split()
# Dropouts of these kinds take `inplace` and ignore it.
NOT_IN_PLACE = {"nn.AlphaDropout", "nn.FeatureAlphaDropout"}


def known(name: str) -> OpFact:
    fact = shipped().find(name)
    assert fact is not None, name
    return fact


def plain(name: str) -> Case:
    case = usual_case(known(name))
    assert case is not None, name
    return case


def check_writes_itself(name: str, written: str) -> None:
    """In every case the argument is written and handed back."""
    for case in known(name).cases:
        if case.when[:1] and case.when[0].argument == "out":
            continue
        assert written in case.writes, name
        assert case.outputs[0].same == "always", name


@pytest.mark.parametrize("word", [*ARITHMETIC, *BITWISE, "div"])
def test_augmented_operators_write_their_left_side(word: str) -> None:
    check_writes_itself(f"Tensor.__i{word}__", "self")


@pytest.mark.parametrize("word", [*ARITHMETIC, *BITWISE, "matmul", "div"])
def test_operators_from_both_sides_make_a_new_tensor(word: str) -> None:
    for name in (f"Tensor.__{word}__", f"Tensor.__r{word}__"):
        assert plain(name).writes == ()
        assert all(output.aliased == "never" for output in plain(name).outputs), name


@pytest.mark.parametrize("word", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_give_booleans_outside_the_graph(word: str) -> None:
    (output,) = plain(f"Tensor.__{word}__").outputs
    assert (output.dtype, output.gradient) == ("bool", "none")


def test_signs_flow_and_the_absolute_value_keeps_its_input() -> None:
    assert plain("Tensor.__neg__").saves == ()
    assert plain("Tensor.__pos__").outputs[0].alias == "self"
    assert [save.what for save in plain("Tensor.__abs__").saves] == ["self"]


def test_indexing_reads_a_view_and_writes_in_place() -> None:
    assert plain("Tensor.__getitem__").outputs[0].aliased == "always"
    assert known("Tensor.__getitem__").cases[-1].outputs[0].aliased == "never"
    assert all(case.writes == ("self",) for case in known("Tensor.__setitem__").cases)


@pytest.mark.parametrize("name", ["T", "mT", "H", "mH", "real"])
def test_properties_that_are_views(name: str) -> None:
    (output,) = plain(f"Tensor.{name}").outputs
    assert (output.alias, output.aliased, output.gradient) == ("self", "always", "flows")


def test_properties_that_leave_the_graph() -> None:
    assert plain("Tensor.data").outputs[0].gradient == "none"
    assert not plain("Tensor.data").outputs[0].shares_version
    assert plain("Tensor.grad").outputs[0].alias == "self.grad"
    assert plain("Tensor.imag").outputs[0].alias == "self"


@pytest.mark.parametrize("name", ["zeros", "ones", "full", "empty", "tensor"])
def test_new_tensors_are_leaves_that_share_nothing(name: str) -> None:
    (output,) = plain(f"Tensor.new_{name}").outputs
    assert (output.gradient, output.leaf, output.aliased) == ("none", True, "never")


def test_unflatten_is_a_view_and_hardswish_keeps_its_input() -> None:
    assert plain("Tensor.unflatten").outputs[0].aliased == "always"
    assert [save.what for save in plain("nn.functional.hardswish").saves] == ["input"]


def test_one_function_is_found_under_each_of_its_names() -> None:
    for name in ("torch.mm", "torch.dsmm", "Tensor.mm", "torch.matmul"):
        assert known(name).cases


@pytest.mark.parametrize("name", ["cat", "stack", "hstack", "vstack", "dstack", "concat", "column_stack"])
def test_joined_tensors_keep_nothing(name: str) -> None:
    assert plain(f"torch.{name}").saves == ()
    assert plain(f"torch.{name}").holds_saved == "never"


def test_choices_and_sums_of_products() -> None:
    assert [save.what for save in known("torch.where").cases[-1].saves] == ["condition"]
    assert [save.what for save in plain("torch.einsum").saves] == ["operands"]
    assert plain("torch.einsum").saves[0].needs == ("operands:others",)


@pytest.mark.parametrize(
    "name", [each for each in sorted(dir(torch.nn.init)) if each.endswith("_") and not each.startswith("_")]
)
def test_initializers_write_a_leaf_and_are_allowed_to(name: str) -> None:
    case = plain(f"nn.init.{name}")
    assert case.writes == ("tensor",)
    assert case.no_grad
    assert case.outputs[0].same == "always"


def optimizers() -> list[str]:
    kinds = [each for each in vars(torch.optim).values() if isinstance(each, type)]
    return sorted(
        each.__name__
        for each in kinds
        if issubclass(each, torch.optim.Optimizer) and each is not torch.optim.Optimizer
    )


@pytest.mark.parametrize("name", optimizers())
def test_a_step_of_any_optimizer_writes_the_parameters(name: str) -> None:
    for case in known(f"optim.{name}").cases:
        assert case.writes == ("params",)
        assert case.no_grad


def with_inplace() -> list[str]:
    table = shipped()
    facts = [table.find(name) for name in table.names() if name.startswith(("nn.", "nn.functional."))]
    return [fact.name for fact in facts if fact and "inplace" in (*fact.options, *fact.parameters)]


@pytest.mark.parametrize("name", with_inplace())
def test_the_option_inplace_makes_a_module_write_its_input(name: str) -> None:
    fact = known(name)
    in_place = [
        case
        for case in fact.cases
        if any((each.argument, each.value) == ("inplace", "True") for each in case.when) and case.writes
    ]
    if name in NOT_IN_PLACE:
        assert not in_place
        return
    written = fact.parameters[0]
    assert in_place, name
    assert all(case.writes == (written,) and case.outputs[0].same == "always" for case in in_place)
    usual = plain(name)
    assert written not in usual.writes


@pytest.mark.parametrize("name", ["dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"])
def test_a_dropout_that_is_switched_off_is_never_told_as_a_write(name: str) -> None:
    for case in known(f"nn.functional.{name}").cases:
        if any((each.argument, each.value) == ("training", "False") for each in case.when):
            assert case.writes == ()
            assert case.outputs[0].aliased == "always"


@pytest.mark.parametrize(
    "name", ["split", "chunk", "tensor_split", "unbind", "split_with_sizes", "hsplit", "vsplit", "dsplit"]
)
def test_pieces_are_views_of_any_number(name: str) -> None:
    for room in ("torch", "Tensor"):
        (case,) = known(f"{room}.{name}").cases
        assert case.sequence
        assert case.outputs[0].aliased == "always"


def test_statistics_are_written_in_training_mode_only() -> None:
    for size in "123":
        for kind, counted in (("BatchNorm", True), ("InstanceNorm", False)):
            name = f"nn.{kind}{size}d"
            assert {"self.running_mean", "self.running_var"} <= set(plain(name).writes)
            assert ("self.num_batches_tracked" in plain(name).writes) == counted
            evaluating = [case for case in known(name).cases if case.when]
            assert all(case.writes == () for case in evaluating)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_keep_their_input_and_parameters(kind: str) -> None:
    kept = {save.what for save in plain(f"nn.{kind}").saves if save.when == "always"}
    assert {"input", "hx", "self.parameters"} <= kept
    assert ("result.0" in kept) == (kind == "LSTM")


def test_conditions_rest_on_no_accident_of_a_sample() -> None:
    """Options that are numbers are compared only with values that switch something off or on."""
    table = shipped()
    for name in table.names():
        for case in known(name).cases:
            for condition in case.when:
                if condition.kind in ("equals", "not") and condition.value[:1].isdigit():
                    assert condition.value in ("0.0", "1.0"), f"{name}: {condition}"
                assert condition.argument not in ("dim", "eps", "split_size", "chunks") or (
                    condition.kind in ("none", "number", "tensor", "sequence") or condition.value == "True"
                ), f"{name}: {condition}"


def test_no_operator_takes_a_tensor_at_a_parameter_where_none_is_looked_for() -> None:
    taken = {
        argument.name
        for schema in torch._C._jit_get_all_schemas()
        # Names with an underscore are torch's own affair: no program calls them.
        if schema.name.startswith("aten::") and not schema.name.startswith("aten::_")
        for argument in schema.arguments
        if "Tensor" in str(argument.type)
    }
    assert NOT_TENSORS & taken == {"repeats"}
    # How often each element is repeated: torch takes integers alone.
    with pytest.raises(RuntimeError, match="repeat_interleave"):
        torch.ones(2).repeat_interleave(torch.tensor([1.0, 2.0], requires_grad=True))


@pytest.mark.parametrize(
    "refused",
    [
        lambda x, given: x.gather(0, given),
        lambda x, given: x.scatter(0, given, 1.0),
        lambda x, given: x.take(given),
        lambda x, given: x.index_select(0, given[0]),
        lambda x, given: x.index_add(0, given[0], x),
        lambda x, given: x.masked_fill(given, 0.0),
        lambda x, given: x.masked_select(given),
        lambda x, given: torch.where(given, x, x),
    ],
)
def test_an_index_or_a_mask_that_could_bring_a_graph_is_refused(refused: Callable[..., object]) -> None:
    with pytest.raises((RuntimeError, IndexError)):
        refused(torch.ones(3, 3), torch.ones(3, 3, requires_grad=True))
