"""Runs one program on torch in this process and says how it ended."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import torch

from gradsight_dev.fuzz.oracle.steering import Steering, quiet_torch

SECONDS_PER_RUN = 5.0
"""Of processor time: a busy machine must not change a verdict."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The program reached its end; `names` is what it left behind."""

    names: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Raised:
    """The program raised; `line` is the innermost line of the program in the traceback."""

    error: str
    message: str
    line: int


class TimeUp(BaseException):
    """The program did not end in time."""


def run(
    code: CodeType,
    steering: Steering,
    around: AbstractContextManager[Any] | None = None,
) -> Ended | Raised:
    """Execute the compiled program in a fresh namespace."""
    names: dict[str, Any] = {"__name__": "__main__", "__file__": code.co_filename}
    with warnings.catch_warnings(), quiet_torch(), _time_limit():
        warnings.simplefilter("ignore")
        try:
            with steering, around or nullcontext():
                exec(code, names)
        except (Exception, TimeUp) as error:
            return Raised(type(error).__name__, str(error), innermost_line(error, code.co_filename))
    return Ended(names)


def innermost_line(error: BaseException, path: str) -> int:
    """The last line of the program that was running when the error came up."""
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def tensors_of(names: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor reachable from the program's names, under a label that is the same in every run."""
    seen: set[int] = set()
    for name in sorted(names):
        if not name.startswith("__"):
            yield from _tensors_in(name, names[name], seen, 0)


def gradient_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """The gradient torch accumulated; None for tensors that keep none, and for views torch refuses to talk about."""
    try:
        if tensor.is_inference() or not (tensor.is_leaf or tensor.retains_grad):
            return None
    except RuntimeError:
        return None
    return tensor.grad


def wants_gradient(tensor: torch.Tensor) -> bool:
    """Whether it is a leaf that requires grad."""
    try:
        return bool(tensor.is_leaf and tensor.requires_grad)
    except RuntimeError:
        return False


def _tensors_in(label: str, value: Any, seen: set[int], depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield label, value
        return
    if depth > 4 or id(value) in seen or isinstance(value, type):
        return
    seen.add(id(value))
    if isinstance(value, torch.nn.Module):
        for name, tensor in (*value.named_parameters(), *value.named_buffers()):
            yield f"{label}.{name}", tensor
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            yield from _tensors_in(f"{label}[{position}]", item, seen, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _tensors_in(f"{label}[{key!r}]", item, seen, depth + 1)
    elif type(value).__module__ in ("__main__", "types"):
        for name, item in getattr(value, "__dict__", {}).items():
            yield from _tensors_in(f"{label}.{name}", item, seen, depth + 1)


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TimeUp("the program did not end in time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_PER_RUN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
