"""CUDA on a machine without it: reported, and mapped to the CPU when the user asks for that.

Classes are replaced by subclasses, never by functions: torch code that is imported later annotates with them.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch

from gradsight.agent.faults import Ledger

_ELSEWHERE = ("cuda", "mps", "xpu")
# Who is told when something is mapped for the first time.
_ledgers: list[Ledger] = []


def prepare(ledger: Ledger, wanted: bool) -> None:
    """Maps other devices to the CPU when asked and when they are not there."""
    if not wanted or torch.cuda.is_available():
        return
    # Optimizers import it later, and it must not see the replaced classes.
    importlib.import_module("torch._dynamo")
    _ledgers.append(ledger)
    _map_modules()
    _map_tensors()
    _map_amp(ledger)
    _map_queries()


def to_cpu(device: Any) -> Any:
    """The CPU in place of a device that is not there; anything else as it is."""
    name = device.type if isinstance(device, torch.device) else device
    if not isinstance(name, str) or name.split(":")[0] not in _ELSEWHERE:
        return device
    _tell()
    return torch.device("cpu") if isinstance(device, torch.device) else "cpu"


def _tell() -> None:
    for ledger in _ledgers:
        ledger.note("CUDA is not available: tensors and modules meant for it stay on the CPU")


def _map_modules() -> None:
    module: Any = torch.nn.Module
    original = module.to

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        return original(
            self, *[to_cpu(item) for item in args], **{key: to_cpu(item) for key, item in kwargs.items()}
        )

    def cuda(self: Any, device: Any = None) -> Any:
        _tell()
        return self

    module.to = to
    module.cuda = cuda


def _map_tensors() -> None:
    tensor: Any = torch.Tensor
    original = tensor.to

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        return original(
            self, *[to_cpu(item) for item in args], **{key: to_cpu(item) for key, item in kwargs.items()}
        )

    def here(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self

    def cuda(self: Any, *args: Any, **kwargs: Any) -> Any:
        _tell()
        return self

    tensor.to = to
    tensor.cuda = cuda
    tensor.pin_memory = here
    for name in (
        "tensor", "zeros", "ones", "empty", "full", "rand", "randn", "randint", "arange", "linspace", "eye",
        "as_tensor", "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randperm",
        "normal", "load",
    ):  # fmt: skip
        _map_factory(name)


def _map_factory(name: str) -> None:
    original = getattr(torch, name)

    def make(*args: Any, **kwargs: Any) -> Any:
        for option in ("device", "map_location"):
            if option in kwargs:
                kwargs[option] = to_cpu(kwargs[option])
        return original(*args, **kwargs)

    make.__name__ = name
    setattr(torch, name, make)


def _map_amp(ledger: Ledger) -> None:
    plain_autocast: Any = torch.autocast
    plain_scaler: Any = (
        torch.amp.GradScaler if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler
    )

    class autocast(plain_autocast):  # noqa: N801 - torch's own name
        def __init__(self, device_type: Any = "cuda", dtype: Any = None, **options: Any) -> None:
            if dtype in (None, torch.float16) and to_cpu(device_type) != device_type:
                ledger.note("float16 autocast runs as bfloat16 on the CPU")
                dtype = torch.bfloat16
            super().__init__(to_cpu(device_type), dtype=dtype, **options)

    class cuda_autocast(autocast):  # noqa: N801 - torch's own name
        def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
            super().__init__("cuda", dtype, enabled=enabled, cache_enabled=cache_enabled)

    class GradScaler(plain_scaler):
        def __init__(self, device: Any = "cuda", **options: Any) -> None:
            super().__init__(to_cpu(device), **options)

    torch.autocast = autocast
    torch.amp.autocast = autocast
    torch.cuda.amp.autocast = cuda_autocast
    torch.cuda.amp.GradScaler = GradScaler
    torch.amp.GradScaler = GradScaler


def _map_queries() -> None:
    cuda: Any = torch.cuda
    for name in (
        "synchronize",
        "empty_cache",
        "set_device",
        "manual_seed",
        "manual_seed_all",
        "init",
        "reset_peak_memory_stats",
    ):
        setattr(cuda, name, _do_nothing)
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "current_device"):
        setattr(cuda, name, _zero)
    cuda.is_available = cuda.is_bf16_supported = _yes
    cuda.is_current_stream_capturing = _no
    cuda.device_count = _one


def _do_nothing(*args: Any, **kwargs: Any) -> None:
    return None


def _zero(*args: Any, **kwargs: Any) -> int:
    return 0


def _one(*args: Any, **kwargs: Any) -> int:
    return 1


def _yes(*args: Any, **kwargs: Any) -> bool:
    return True


def _no(*args: Any, **kwargs: Any) -> bool:
    return False
