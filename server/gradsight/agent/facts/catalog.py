"""Which public callables a user of torch can reach, under the names the table uses."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Callable

import torch

# Tensor makers that `torch.overrides` leaves out because they take no tensor.
FACTORIES = [
    "arange",
    "asarray",
    "as_tensor",
    "bartlett_window",
    "blackman_window",
    "complex",
    "empty",
    "empty_permuted",
    "empty_quantized",
    "empty_strided",
    "eye",
    "frombuffer",
    "from_file",
    "from_numpy",
    "full",
    "hamming_window",
    "hann_window",
    "kaiser_window",
    "linspace",
    "logspace",
    "normal",
    "ones",
    "rand",
    "randint",
    "randn",
    "randperm",
    "range",
    "scalar_tensor",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "tensor",
    "tril_indices",
    "triu_indices",
    "vander",
    "zeros",
]

# Properties of a tensor: those that hand out a tensor or touch autograd, and those that only describe it.
PROPERTIES = [
    "T",
    "H",
    "mT",
    "mH",
    "data",
    "grad",
    "real",
    "imag",
    "grad_fn",
    "requires_grad",
    "is_leaf",
    "retains_grad",
    "shape",
    "dtype",
    "device",
    "layout",
    "ndim",
    "names",
    "itemsize",
    "nbytes",
    "output_nr",
    "_version",
    "_base",
    "is_cpu",
    "is_cuda",
    "is_sparse",
    "is_sparse_csr",
    "is_quantized",
    "is_meta",
    "is_mps",
    "is_xpu",
    "is_mkldnn",
    "is_nested",
    "name",
    "volatile",
    "grad_dtype",
]


@dataclass
class PublicCallable:
    """One public callable: `name` as the table has it, `path` as Python imports it."""

    name: str
    path: str
    room: str
    target: Callable[..., Any]


def overridable() -> Iterator[PublicCallable]:
    """What `torch.overrides` declares overridable, by namespace; private names are left out."""
    rooms = (
        ("torch", torch, "torch."),
        ("torch.Tensor", torch.Tensor, "Tensor."),
        ("torch.nn.functional", torch.nn.functional, "nn.functional."),
        ("torch.linalg", torch.linalg, "linalg."),
        ("torch.special", torch.special, "special."),
        ("torch.fft", torch.fft, "fft."),
    )
    declared = torch.overrides.get_overridable_functions()
    for room, holder, prefix in rooms:
        functions = set(declared[holder])
        if holder is torch:
            functions.update(declared.get(torch.functional, ()))
        for short in dir(holder):
            if short.startswith("_") and not short.startswith("__"):
                continue
            # Several names may stand for one function: `torch.mm` is also `torch.spmm`.
            target = getattr(holder, short)
            if not callable(target) or not _is_one_of(target, functions):
                continue
            if prefix + short == "Tensor.__setitem__":
                target = _set_item
            yield PublicCallable(prefix + short, f"{room}.{short}", room, target)


def _is_one_of(target: Any, functions: set[Any]) -> bool:
    try:
        return target in functions
    except TypeError:
        return False


def factories() -> Iterator[PublicCallable]:
    """Functions that make a tensor from no tensor."""
    declared = {entry.name for entry in overridable()}
    for short in FACTORIES:
        target = getattr(torch, short, None)
        if target is not None and "torch." + short not in declared:
            yield PublicCallable("torch." + short, "torch." + short, "factories", target)


def properties() -> Iterator[PublicCallable]:
    """Tensor properties, as functions of the tensor."""
    for short in PROPERTIES:
        if hasattr(torch.Tensor, short):
            yield PublicCallable(
                "Tensor." + short, "torch.Tensor." + short, "Tensor properties", _getter(short)
            )


def modules() -> Iterator[PublicCallable]:
    """The `nn.Module` classes of `torch.nn`."""
    for short in sorted(dir(torch.nn)):
        target = getattr(torch.nn, short)
        if not short.startswith("_") and inspect.isclass(target) and issubclass(target, torch.nn.Module):
            yield PublicCallable("nn." + short, "torch.nn." + short, "torch.nn modules", target)


def optimizers() -> Iterator[PublicCallable]:
    """The optimizer classes of `torch.optim`."""
    for short in sorted(dir(torch.optim)):
        target = getattr(torch.optim, short)
        base = torch.optim.Optimizer
        if inspect.isclass(target) and issubclass(target, base) and target is not base:
            yield PublicCallable("optim." + short, "torch.optim." + short, "torch.optim", target)


def initializers() -> Iterator[PublicCallable]:
    """The in-place functions of `torch.nn.init`."""
    for short in sorted(dir(torch.nn.init)):
        target = getattr(torch.nn.init, short)
        if short.endswith("_") and not short.startswith("_") and isinstance(target, types.FunctionType):
            yield PublicCallable("nn.init." + short, "torch.nn.init." + short, "torch.nn.init", target)


def further() -> Iterator[PublicCallable]:
    """Public callables outside `torch.overrides` that a training script meets."""
    yield PublicCallable("Tensor.__iter__", "torch.Tensor.__iter__", "torch.Tensor", _iterate)
    declared = {entry.name for entry in overridable()}
    for room, holder, prefix in (
        ("torch.nn.functional", torch.nn.functional, "nn.functional."),
        ("torch.nn.utils", torch.nn.utils, "nn.utils."),
        ("torch.nn.utils", torch.nn.utils.rnn, "nn.utils.rnn."),
        ("torch.sparse", torch.sparse, "sparse."),
        ("torch.fft", torch.fft, "fft."),
    ):
        for short in sorted(dir(holder)):
            target = getattr(holder, short)
            if short in _FURTHER and prefix + short not in declared and callable(target):
                yield PublicCallable(prefix + short, f"{holder.__name__}.{short}", room, target)
    for short in sorted(dir(torch)):
        target = getattr(torch, short)
        if isinstance(target, types.BuiltinFunctionType) and hasattr(torch._C._VariableFunctions, short):
            if "torch." + short not in declared and not short.startswith(_OTHER_BACKENDS):
                yield PublicCallable("torch." + short, "torch." + short, "torch", target)
    for short in sorted(dir(torch.Tensor)):
        target = getattr(torch.Tensor, short)
        if isinstance(target, (types.MethodDescriptorType, types.FunctionType)) and not short.startswith("_"):
            if "Tensor." + short not in declared:
                yield PublicCallable("Tensor." + short, "torch.Tensor." + short, "torch.Tensor", target)
    yield PublicCallable("torch.from_dlpack", "torch.from_dlpack", "torch", torch.from_dlpack)


_OTHER_BACKENDS = ("_", "cudnn_", "miopen_", "mkldnn_", "sym_")
_FURTHER = frozenset(
    (
        "sigmoid tanh relu_ leaky_relu_ elu_ hardtanh_ celu_ selu_ rrelu_ threshold_ "
        "scaled_dot_product_attention clip_grad_norm_ clip_grad_value_ get_total_norm "
        "clip_grads_with_norm_ parameters_to_vector vector_to_parameters pad_sequence unpad_sequence "
        "pack_padded_sequence pad_packed_sequence pack_sequence unpack_sequence gumbel_softmax one_hot "
        "upsample upsample_bilinear upsample_nearest scaled_mm grouped_mm hardswish hardsigmoid mm "
        "addmm sum softmax log_softmax sampled_addmm fftfreq rfftfreq"
    ).split()
)


def functions() -> list[PublicCallable]:
    """Every callable that is measured by calling it: functions, methods, properties, factories, initializers."""
    found: dict[str, PublicCallable] = {}
    for source in (overridable, factories, properties, initializers, further):
        for entry in source():
            found.setdefault(entry.name, entry)
    return list(found.values())


def resolve(name: str) -> Callable[..., Any] | None:
    """The object behind a table name, or None."""
    found: Any = torch
    for part in name.split("."):
        if part != "torch":
            found = getattr(found, part, None)
    return found if callable(found) else None


def _set_item(self: torch.Tensor, index: Any, value: Any) -> torch.Tensor:
    """`self[index] = value`; the tensor afterwards is told as the result."""
    self[index] = value
    return self


def _iterate(self: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """`for row in self`: the rows that come out."""
    return tuple(iter(self))


def _getter(short: str) -> Callable[[torch.Tensor], Any]:
    def read(self: torch.Tensor) -> Any:
        return getattr(self, short)

    read.__name__ = short
    return read
