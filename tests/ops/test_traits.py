"""What the file of traits says is what torch does; what is still written by hand is held against torch too."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

from gradsight.agent.facts.modules import RECURRENT_OPTIONS
from gradsight.fixes.kinds import COMPUTED, MADE, METHODS
from gradsight.interp.libraries.library import TENSORLESS
from gradsight.interp.libraries.torch_functions import MACHINE_FACTS, NOT_TENSORS
from gradsight.interp.tensors.autograd import OF_WHOLE_NUMBERS
from gradsight.interp.tensors.backward_faults import KEEPS_THE_OBJECT
from gradsight.interp.tensors.layers import constructor_options, make_tensors
from gradsight.interp.tensors.layouts import DENSE_VIEWS
from gradsight.interp.tensors.writes import COPIES, KEEPS_ZERO, MOVES, PLACES, UNCHECKED
from gradsight.model.unfinished import CONTAINERS
from gradsight.ops.traits import TRAITS, WRITTEN_BY, having, layer_fact, layer_names

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Linear", (3, 5), {}),
    ("Linear", (3, 5), {"bias": False}),
    ("Conv2d", (3, 4, 3, 1, 0, 1, 1, False), {}),
    ("BatchNorm1d", (6,), {}),
    ("BatchNorm2d", (6,), {"affine": False}),
    ("BatchNorm3d", (6,), {"bias": False, "track_running_stats": False}),
    ("InstanceNorm1d", (6,), {}),
    ("InstanceNorm2d", (6,), {"affine": True}),
    ("LayerNorm", (6,), {"bias": False}),
    ("LayerNorm", ((2, 3),), {}),
    ("GroupNorm", (2, 6), {}),
    ("RMSNorm", (6,), {"elementwise_affine": False}),
    ("Embedding", (7, 5, 0), {}),
    ("RNN", (3, 4, 2, "relu", False), {}),
    ("LSTM", (3, 4, 2), {"bidirectional": True, "bias": False}),
    ("LSTM", (3, 4), {"proj_size": 2}),
    ("GRU", (3, 4, 3), {"bidirectional": True}),
    ("GRUCell", (3, 4), {}),
    ("MultiheadAttention", (8, 2), {"add_bias_kv": True}),
    ("MultiheadAttention", (8, 2), {"bias": False}),
    ("LazyBatchNorm1d", (), {}),
    ("LinearCrossEntropyLoss", (3, 5), {"bias": True}),
    ("PReLU", (4,), {}),
    ("SyncBatchNorm", (6,), {}),
]


@pytest.mark.facts
def test_the_file_of_traits_is_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gradsight_dev.traits", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_file_says_what_wrote_it() -> None:
    with open(TRAITS, encoding="utf-8") as file:
        assert WRITTEN_BY in file.readline()


@pytest.mark.parametrize(("name", "args", "kwargs"), CASES)
def test_a_layer_holds_the_tensors_that_torch_registers(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    made = getattr(torch.nn, name)(*args, **kwargs)
    told = make_tensors(f"nn.{name}", constructor_options(f"nn.{name}", list(args), kwargs))
    by_kind = {"parameter": dict(made.named_parameters()), "buffer": dict(made.named_buffers())}
    for kind, tensors in by_kind.items():
        assert {key for key, (word, _) in told.items() if word == kind} == tensors.keys()
        for key, tensor in tensors.items():
            assert told[key][1] is None or told[key][1] == tuple(tensor.shape)


@pytest.mark.parametrize("name", layer_names())
def test_a_default_that_is_told_is_the_one_that_torch_shows(name: str) -> None:
    fact = layer_fact(name)
    assert fact is not None
    kind = getattr(torch.nn, name[3:])
    given = inspect.signature(kind.__init__).parameters.values()
    required = [
        each.name for each in given if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    ]
    try:
        made = kind(**dict.fromkeys(required[1:], 4))
    except (TypeError, ValueError, RuntimeError, AttributeError):
        assert required[1:] or issubclass(kind, torch.nn.RNNBase)
        return
    for option, value in fact.defaults.items():
        shown = getattr(made, option, value)
        assert isinstance(shown, torch.Tensor) or shown is None or shown == value


@pytest.mark.parametrize("name", sorted(RECURRENT_OPTIONS))
def test_options_of_recurrent_layers_by_hand_are_those_of_torchs_source(name: str) -> None:
    source = textwrap.dedent(inspect.getsource(getattr(torch.nn, name)))
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    constructors = [
        each for each in body.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"
    ]
    declared = next(each.args for each in constructors if each.args.vararg is None)
    written = ast.parse(f"def made({RECURRENT_OPTIONS[name]}): ...").body[0]
    assert isinstance(written, ast.FunctionDef)
    further = ["device", "dtype"]
    assert [each.arg for each in written.args.args] + further == [each.arg for each in declared.args]
    defaults = [ast.unparse(each) for each in declared.defaults]
    assert [ast.unparse(each) for each in written.args.defaults] + ["None", "None"] == defaults


def test_layers_whose_parameters_no_option_tells_do_learn() -> None:
    varying = {name for name in layer_names() if (fact := layer_fact(name)) is not None and fact.varies}
    assert varying >= {"nn.Transformer", "nn.TransformerEncoderLayer", "nn.TransformerDecoder"}
    attention = torch.nn.TransformerEncoderLayer(4, 2, 4)
    assert list(attention.parameters())


def test_containers_hold_what_they_are_given_and_no_tensor_of_their_own() -> None:
    for name in CONTAINERS:
        made = getattr(torch.nn, name[3:])()
        assert not list(made.parameters())
        assert layer_fact(name) is None


def shared(*shape: int) -> torch.Tensor:
    """Elements that share one memory location."""
    return torch.ones(1).expand(*shape)


WRITES_TO_SHARED: dict[str, Callable[[], Any]] = {
    "fill_": lambda: shared(3).fill_(2.0),
    "tril_": lambda: shared(3, 3).tril_(),
    "triu_": lambda: shared(3, 3).triu_(),
}


def test_writes_to_shared_memory_by_hand_are_performed() -> None:
    for write in WRITES_TO_SHARED.values():
        write()
    with pytest.raises(RuntimeError, match="more than one element"):
        shared(3).fill_(torch.tensor(2.0))
    with pytest.raises(RuntimeError, match="more than one element"):
        shared(2, 2, 3, 3).tril_()
    assert UNCHECKED - having("writes-shared") == WRITES_TO_SHARED.keys()
    assert having("writes-shared") - UNCHECKED == {"index_put_"}


def test_assignment_to_an_index_moves_values_and_refuses_an_overlap_only_of_its_window() -> None:
    values = torch.tensor([1.0, 2.0, 3.0])
    values[0] = values[1]
    values[:1] = values[2:]
    assert values.tolist() == [3.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="single memory location"):
        values[1:] = values[:-1]
    assert COPIES - having("takes-overlap") == {"index_put_"} == having("refuses-itself") - PLACES


def test_an_index_and_a_copy_of_numpy_move_values() -> None:
    values = torch.tensor([1.25, -2.5])
    assert values[torch.tensor([1])].tolist() == [-2.5]
    assert values[1:].tolist() == [-2.5]
    assert values.numpy().copy().tolist() == [1.25, -2.5]
    assert MOVES - having("moves") == {"index", "slice", "copy", "index_put_"}


def test_numpy_multiplication_in_place_keeps_zeros() -> None:
    zeros = numpy.zeros(3)
    zeros *= 4
    assert not zeros.any()
    assert KEEPS_ZERO - having("keeps-zero") == {"NumPy mul="}


def test_matmul_of_two_matrices_keeps_its_arguments_as_they_are() -> None:
    left, right = torch.rand(2, 3, requires_grad=True), torch.rand(3, 2, requires_grad=True)
    node: Any = (left @ right).grad_fn
    assert node._saved_self is left
    assert node._saved_mat2 is right
    assert KEEPS_THE_OBJECT - having("keeps-object") == {"matmul"}
    assert "linear" not in KEEPS_THE_OBJECT


def test_an_alias_of_a_contiguous_tensor_is_contiguous() -> None:
    assert torch.ops.aten.alias(torch.rand(2, 3)).is_contiguous()
    assert DENSE_VIEWS - having("stays-dense") == {"alias"}


GIVES_NO_TENSOR: dict[str, tuple[Any, ...]] = {
    "manual_seed": (0,),
    "device": ("cpu",),
    "set_default_dtype": (torch.float32,),
    "is_tensor": (1,),
    "compile": (abs,),
    "Generator": (),
    "Size": ((2,),),
    "is_grad_enabled": (),
    "get_default_dtype": (),
    "finfo": (torch.float32,),
    "iinfo": (torch.int32,),
    "initial_seed": (),
    "is_floating_point": (torch.ones(1),),
    "numel": (torch.ones(1),),
    "typename": (torch.ones(1),),
    "are_deterministic_algorithms_enabled": (),
    "get_num_threads": (),
    "is_complex": (torch.ones(1),),
    "can_cast": (torch.int32, torch.float32),
    "promote_types": (torch.int32, torch.float32),
    "result_type": (torch.ones(1), 1.0),
    "is_inference_mode_enabled": (),
    "is_storage": (1,),
}
SETS_THE_PROCESS = {
    "set_num_threads",
    "use_deterministic_algorithms",
    "set_printoptions",
    "seed",
    "set_rng_state",
    "set_default_tensor_type",
    "set_float32_matmul_precision",
    "set_deterministic_debug_mode",
}
ABOUT_FILES_AND_STATE = {"save", "load", "dtype", "get_rng_state"}


def test_functions_that_give_no_tensor_give_none() -> None:
    for name, arguments in GIVES_NO_TENSOR.items():
        assert not isinstance(getattr(torch, name)(*arguments), torch.Tensor), name
    for name in SETS_THE_PROCESS:
        assert callable(getattr(torch, name))
    assert not torch.get_rng_state().requires_grad
    assert {*GIVES_NO_TENSOR, *SETS_THE_PROCESS, *ABOUT_FILES_AND_STATE} == NOT_TENSORS


def test_questions_about_the_machine_have_one_answer() -> None:
    for name in MACHINE_FACTS:
        holders = [
            each for each in (torch.cuda, torch.backends.mps, torch.backends.cuda) if hasattr(each, name)
        ]
        assert holders
        for holder in holders:
            assert getattr(holder, name)() is getattr(holder, name)()


def test_what_is_made_or_computed_by_hand_is_one_tensor() -> None:
    assert isinstance(torch.from_numpy(numpy.zeros(2)), torch.Tensor)
    assert isinstance(torch.where(torch.tensor([True]), torch.ones(1), torch.zeros(1)), torch.Tensor)
    assert isinstance(torch.where(torch.tensor([True])), tuple)
    functions = having("one-tensor torch") | having("one-tensor nn.functional")
    assert MADE - functions == {"from_numpy"}
    assert COMPUTED - functions == {"where"}
    assert METHODS - having("one-tensor Tensor") == {"cuda"}


def test_modules_that_neither_write_a_tensor_nor_hand_one_on_are_of_the_standard_library_or_only_show() -> (
    None
):
    others = {name for name in TENSORLESS if name.partition(".")[0] not in sys.stdlib_module_names}
    assert others == {"tqdm", "matplotlib.pyplot", "wandb"}


def test_whole_numbers_are_what_an_index_and_counts_are_made_of() -> None:
    assert having("whole-arguments") >= {
        "gather.index",
        "index_put.indices",
        "one_hot.tensor",
        "bincount.input",
    }
    assert not having("whole-arguments") & {"gather.input", "where.input", "embedding.weight", "take.input"}
    with pytest.raises(TypeError):
        torch.ones(2).repeat(torch.tensor(2.0))  # type: ignore[call-overload]
    assert torch.ones(2).repeat(torch.tensor(2)).shape == (4,)  # type: ignore[call-overload]
    assert OF_WHOLE_NUMBERS - having("whole-arguments") == {"repeat.repeats"}


def test_an_optimizer_that_goes_by_earlier_steps_ends_elsewhere_if_it_is_made_anew() -> None:
    assert not having("goes-by-earlier-steps") & {"SGD", "ASGD", "LBFGS"}
    ends = []
    for made_anew in (False, True):
        parameter = torch.nn.Parameter(torch.ones(1))
        optimizer = torch.optim.RMSprop([parameter])
        for gradient in (1.0, 0.1):
            optimizer = torch.optim.RMSprop([parameter]) if made_anew else optimizer
            parameter.grad = torch.tensor([gradient])
            optimizer.step()
        ends.append(parameter.item())
    assert abs(ends[0] - ends[1]) > 0.01
    assert "RMSprop" in having("goes-by-earlier-steps")


def test_an_optimizer_that_remembers_moves_a_parameter_without_a_gradient() -> None:
    assert having("remembers-gradients") >= {"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "SparseAdam"}
    for name, moves in (("Adam", True), ("SGD", False), ("RMSprop", False)):
        parameter = torch.nn.Parameter(torch.ones(2))
        optimizer = getattr(torch.optim, name)([parameter], lr=0.1)
        for gradient in (torch.ones(2), torch.zeros(2)):
            before = parameter.detach().clone()
            parameter.grad = gradient
            optimizer.step()
        assert (not torch.equal(before, parameter.detach())) is moves
