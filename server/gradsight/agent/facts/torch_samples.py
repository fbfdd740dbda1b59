"""Calls taken from torch's own test databases (OpInfo, ModuleInfo), under the names of the public callables."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
import types
import unittest
import warnings
from collections.abc import Iterator
from typing import Any, Callable

import torch
from torch.overrides import TorchFunctionMode

from gradsight.agent.facts.observe import CallTemplate, seed_cpu

SAMPLES_PER_ENTRY = 60
SAMPLES_PER_WRAPPER = 30
DTYPES = (
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.int64,
    torch.bool,
    torch.uint8,
)

# Python operators and the OpInfo entry whose samples fit them.
OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "div": "div", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift", "eq": "eq", "ne": "ne",
    "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "neg": "neg", "pos": "positive", "abs": "abs", "invert": "bitwise_not",
}  # fmt: skip


def import_databases() -> tuple[list[Any], list[Any], str]:
    """(op_db, module_db, why they are missing).

    torch's test helpers import `expecttest` at the top and need only its base class; a stand-in is enough here.
    `packaging` is found inside pip where it is not installed by itself.
    """
    if "expecttest" not in sys.modules and importlib.util.find_spec("expecttest") is None:
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase  # type: ignore[attr-defined]
        sys.modules["expecttest"] = stand_in
    if importlib.util.find_spec("packaging") is None and importlib.util.find_spec("pip") is not None:
        for part in ("packaging", "packaging.version"):
            sys.modules[part] = importlib.import_module("pip._vendor." + part)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torch.testing._internal.common_methods_invocations import op_db
            from torch.testing._internal.common_modules import module_db
    except Exception as error:
        trouble = f"torch's sample inputs cannot be imported ({error}); operators that need them keep the shipped facts"
        return [], [], trouble
    return list(op_db), list(module_db), ""


class _Recorder(TorchFunctionMode):
    """Notes the first call of a public function inside a wrapper."""

    def __init__(self) -> None:
        super().__init__()
        self.first: tuple[Any, tuple[Any, ...], dict[str, Any]] | None = None

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = torch.overrides.resolve_name(func) or ""
        if self.first is None and not name.endswith(("__get__", "__set__", "manual_seed")):
            self.first = (func, tuple(args), dict(kwargs or {}))
        return func(*args, **(kwargs or {}))


class TorchSamples:
    """Calls by table name, collected once from OpInfo."""

    def __init__(self, op_db: list[Any], seed: int = 0, per_entry: int = SAMPLES_PER_ENTRY) -> None:
        self._by_name: dict[str, list[Any]] = {}
        self._seed = seed
        self._per_entry = per_entry
        self._drawn: dict[int, list[CallTemplate]] = {}
        self._rerouted: dict[str, list[CallTemplate]] = {}
        for entry in op_db:
            for name in self._names(entry):
                self._by_name.setdefault(name, []).append(entry)
        self._resolve_wrappers(op_db)

    def calls(self, name: str) -> Iterator[CallTemplate]:
        """Calls that may fit the callable of this name."""
        for entry in self._by_name.get(name, []):
            yield from self._draw(entry)
        yield from self._rerouted.get(name, [])

    def _names(self, entry: Any) -> Iterator[str]:
        titles = [entry.name, *[alias.name for alias in entry.aliases]]
        for title in titles:
            short = title[6:] if title.startswith("torch.") else title
            if "." in short:
                if not _is_wrapper(entry):
                    yield short
                    tail = short.rsplit(".", 1)[1]
                    # `nn.functional.relu` often has brothers with the same arguments: `torch.relu`, `Tensor.relu_`.
                    yield from (f"torch.{tail}", f"torch.{tail}_", f"Tensor.{tail}", f"Tensor.{tail}_")
                continue
            if not _is_wrapper(entry):
                yield "torch." + short
                yield f"torch.{short}_"
                yield "nn.functional." + short
            for method in (short, short + "_"):
                yield "Tensor." + method
        for operator, title in OPERATORS.items():
            if title in titles:
                yield f"Tensor.__{operator}__"
                yield f"Tensor.__i{operator}__"
                yield f"Tensor.__r{operator}__"

    def _draw(self, entry: Any) -> list[CallTemplate]:
        key = id(entry)
        if key not in self._drawn:
            self._drawn[key] = list(itertools.islice(self._samples(entry), self._per_entry))
        return self._drawn[key]

    def _samples(self, entry: Any) -> Iterator[CallTemplate]:
        for sample in self._raw_samples(entry):
            yield CallTemplate((sample.input, *sample.args), dict(sample.kwargs))

    def _raw_samples(self, entry: Any) -> Iterator[Any]:
        dtype = next((each for each in DTYPES if each in entry.dtypes), None) or next(
            iter(entry.dtypes), None
        )
        if dtype is None:
            return
        needs_grad = bool(entry.supports_autograd and (dtype.is_floating_point or dtype.is_complex))
        seed_everything(self._seed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield from entry.sample_inputs("cpu", dtype, requires_grad=needs_grad)
        except Exception:
            return

    def _resolve_wrappers(self, op_db: list[Any]) -> None:
        """Entries that call a public function through a lambda: record what the lambda really calls."""
        for entry in op_db:
            if not _is_wrapper(entry):
                continue
            for sample in itertools.islice(self._raw_samples(entry), SAMPLES_PER_WRAPPER):
                found = _inner_call(entry.op, (sample.input, *sample.args), dict(sample.kwargs))
                if found is not None:
                    name, call = found
                    self._rerouted.setdefault(name, []).append(call)


def _is_wrapper(entry: Any) -> bool:
    public: Any = torch
    for part in entry.name.split("."):
        public = getattr(public, part, None)
    return public is not entry.op


def _inner_call(
    function: Callable[..., Any], positional: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[str, CallTemplate] | None:
    recorder = _Recorder()
    try:
        with warnings.catch_warnings(), recorder:
            warnings.simplefilter("ignore")
            function(*positional, **keywords)
    except Exception:
        return None
    if recorder.first is None:
        return None
    func, args, kwargs = recorder.first
    resolved = torch.overrides.resolve_name(func) or ""
    if not resolved.startswith("torch."):
        return None
    short = resolved[6:].replace("_VariableFunctions.", "")
    return (short if "." in short else "torch." + short), CallTemplate(args, kwargs)


def seed_everything(seed: int) -> None:
    """Make torch's samples repeatable; they draw from three generators."""
    import random

    random.seed(seed)
    seed_cpu(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)
