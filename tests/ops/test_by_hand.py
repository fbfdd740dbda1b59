"""Facts written by hand, each run against torch by a small program of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from gradsight.agent.facts.by_hand import hand_facts
from gradsight.ops.fact import OpFact
from gradsight.ops.table import shipped

TRIED = {
    "Tensor.grad",
    "Tensor._base",
    "Tensor.backward",
    "Tensor.retain_grad",
    "Tensor.register_hook",
    "Tensor.register_post_accumulate_grad_hook",
    "Tensor.const_data_ptr",
    "Tensor.__dlpack__",
    "torch.from_numpy",
    "torch.from_file",
    "nn.Parameter",
    "nn.utils.clip_grad_norm_",
    "nn.utils.clip_grads_with_norm_",
    "nn.utils.clip_grad_value_",
    "nn.utils.vector_to_parameters",
    "utils.checkpoint.checkpoint",
    "autograd.grad",
    "autograd.backward",
    "nn.Buffer",
}
NEEDS_A_DEVICE = {"Tensor.cuda", "Tensor.xpu", "Tensor.ipu", "Tensor.mtia", "Tensor.record_stream"}


def by_hand(name: str) -> OpFact:
    fact = shipped().find(name)
    assert fact is not None
    assert fact.origin == "hand"
    return fact


def leaf_with_gradient() -> torch.nn.Parameter:
    leaf = torch.nn.Parameter(torch.rand(3) + 1)
    (leaf * leaf).sum().backward()
    return leaf


def test_every_hand_written_fact_is_tried_here_or_needs_a_device() -> None:
    assert {fact["name"] for fact in hand_facts()} == TRIED | NEEDS_A_DEVICE


def test_grad_is_the_gradient_itself() -> None:
    leaf = leaf_with_gradient()
    kept = leaf.grad
    assert kept is leaf.grad
    assert kept is not None
    leaf.sum().backward()
    assert torch.equal(kept, 2 * leaf.detach() + 1)
    (output,) = by_hand("Tensor.grad").cases[0].outputs
    assert (output.alias, output.same, output.gradient) == ("self.grad", "always", "none")


def test_base_shares_storage_with_its_view() -> None:
    base = torch.rand(4)
    view = base[1:]
    assert view._base is base
    assert by_hand("Tensor._base").cases[0].outputs[0].aliased == "always"


def test_backward_and_retain_grad_return_nothing() -> None:
    leaf = torch.rand(3, requires_grad=True)
    middle = leaf * 2
    assert middle.retain_grad() is None
    assert middle.sum().backward() is None
    assert middle.grad is not None
    assert (
        by_hand("Tensor.backward").cases[0].returns
        == by_hand("Tensor.retain_grad").cases[0].returns
        == "none"
    )


def test_hooks_return_handles() -> None:
    leaf = torch.rand(3, requires_grad=True)
    assert hasattr(leaf.register_hook(lambda gradient: gradient), "remove")
    assert hasattr(leaf.register_post_accumulate_grad_hook(lambda tensor: None), "remove")
    assert by_hand("Tensor.register_hook").cases[0].returns == "object"
    assert by_hand("Tensor.register_post_accumulate_grad_hook").cases[0].returns == "object"
    assert by_hand("Tensor.const_data_ptr").cases[0].returns == "number"


def test_dlpack_shares_memory_unnoticed_and_refuses_grad() -> None:
    tensor = torch.rand(3)
    version = tensor._version
    other = torch.from_dlpack(tensor.__dlpack__())
    other.zero_()
    assert tensor._version == version
    assert not tensor.any()
    try:
        torch.rand(3, requires_grad=True).__dlpack__()
        refused = False
    except (RuntimeError, BufferError):
        refused = True
    case = by_hand("Tensor.__dlpack__").cases[0]
    assert refused == (case.refuses == ("self",))
    assert not case.outputs[0].shares_version


def test_from_numpy_shares_memory_unnoticed() -> None:
    array = torch.zeros(3).numpy()
    tensor = torch.from_numpy(array)
    array += 1
    assert tensor.tolist() == [1, 1, 1]
    assert tensor._version == 0
    (output,) = by_hand("torch.from_numpy").cases[0].outputs
    assert (output.alias, output.shares_version) == ("ndarray", False)


def test_from_file_makes_a_leaf_on_the_files_memory(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(bytes(12))
    mapped = torch.from_file(str(path), shared=True, size=3)
    mapped.add_(1)
    assert any(path.read_bytes())
    (output,) = by_hand("torch.from_file").cases[0].outputs
    assert (mapped.is_leaf, mapped.requires_grad) == (output.leaf, output.gradient != "none")


def test_a_parameter_is_a_leaf_on_the_same_storage() -> None:
    data = torch.rand(3, requires_grad=True) * 2
    parameter = torch.nn.Parameter(data)
    version = parameter._version
    torch.autograd.graph.increment_version(data)
    (output,) = by_hand("nn.Parameter").cases[0].outputs
    assert parameter.is_leaf == output.leaf
    assert (parameter.data_ptr() == data.data_ptr()) == (output.aliased == "always")
    assert (parameter._version != version) == output.shares_version


def test_clipping_writes_gradients_and_not_parameters() -> None:
    for name, clip in (
        ("nn.utils.clip_grad_norm_", lambda given: torch.nn.utils.clip_grad_norm_(given, 0.1)),
        ("nn.utils.clip_grad_value_", lambda given: torch.nn.utils.clip_grad_value_(given, 0.1)),
        (
            "nn.utils.clip_grads_with_norm_",
            lambda given: torch.nn.utils.clip_grads_with_norm_(given, 0.1, torch.tensor(2.0)),
        ),
    ):
        leaf = leaf_with_gradient()
        assert leaf.grad is not None
        before, gradient_before = leaf._version, leaf.grad._version
        outcome = clip([leaf])
        case = by_hand(name).cases[0]
        assert case.writes == ("parameters.grad",)
        assert leaf._version == before
        assert leaf.grad._version != gradient_before
        assert (outcome is None) == (case.returns == "none")


def test_vector_to_parameters_gives_the_parameters_the_vectors_memory() -> None:
    leaf, vector = torch.nn.Parameter(torch.rand(2, 2)), torch.rand(4)
    version = leaf._version
    torch.nn.utils.vector_to_parameters(vector, [leaf])
    assert leaf.data_ptr() == vector.data_ptr()
    assert leaf._version == version
    assert by_hand("nn.utils.vector_to_parameters").cases[0].quiet == ("parameters",)


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_keeps_its_arguments_and_not_the_result(reentrant: bool) -> None:
    case = by_hand("utils.checkpoint.checkpoint").cases[0]
    assert [save.what for save in case.saves] == ["args"]
    for written in ("argument", "result"):
        argument = torch.rand(3, requires_grad=True) * 1
        result = checkpoint(torch.exp, argument, use_reentrant=reentrant)
        with torch.no_grad():
            (argument if written == "argument" else result).mul_(2)
        try:
            result.sum().backward()
            refused = False
        except RuntimeError as error:
            refused = "modified by an inplace operation" in str(error)
        assert refused == (written == "argument")


def test_autograd_grad_hands_out_new_tensors_and_backward_adds_into_grad() -> None:
    leaf = leaf_with_gradient()
    assert leaf.grad is not None
    before = leaf.grad.clone()
    (found,) = torch.autograd.grad(leaf.square().sum(), [leaf])
    assert torch.equal(leaf.grad, before)
    (output,) = by_hand("autograd.grad").cases[0].outputs
    assert found.requires_grad == (output.gradient != "none")
    assert found.shape == leaf.shape
    assert torch.autograd.backward(leaf.sum()) is None
    assert torch.equal(leaf.grad, before + 1)
    assert by_hand("autograd.backward").cases[0].returns == "none"


def test_a_buffer_is_a_leaf_on_the_same_storage() -> None:
    data = torch.rand(3, requires_grad=True) * 2
    buffer = torch.nn.Buffer(data)
    version = buffer._version
    torch.autograd.graph.increment_version(data)
    (output,) = by_hand("nn.Buffer").cases[0].outputs
    assert buffer.is_leaf == output.leaf
    assert (buffer.data_ptr() == data.data_ptr()) == (output.aliased == "always")
    assert (buffer._version != version) == output.shares_version


def test_a_fused_step_moves_no_version_and_the_usual_one_does() -> None:
    for kind, fact in ((torch.optim.SGD, "optim.SGD"), (torch.optim.AdamW, "optim.AdamW")):
        for fused in (True, False):
            leaf = leaf_with_gradient()
            version, before = leaf._version, leaf.detach().clone()
            kind([leaf], lr=0.1, fused=fused).step()
            assert not torch.equal(before, leaf.detach())
            found = shipped().find(fact)
            assert found is not None
            case = found.cases[0] if fused else found.cases[-1]
            assert (leaf._version != version) == case.bumps_version
