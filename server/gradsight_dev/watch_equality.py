"""`python -m gradsight_dev.watch_equality [--programs N] [--first SEED]`: a watch changes no result, to the last bit.

Every random program runs twice in this process, once under `gradsight.watch()`.  Each tensor that its variables hold, each
gradient, and the error that ended it, if one did, must be the same; and every attribute of torch and Python that the watch
has listened at must be the same object as before.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import linecache
import random
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch.optim import optimizer
from torch.overrides import _get_current_function_mode_stack

import gradsight
from gradsight.agent import sites
from gradsight.agent.watch import Watch
from gradsight_dev.fuzz.grammar import generate
from gradsight_dev.fuzz.program import Program


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=1000, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    options = parser.parse_args()
    torch.set_num_threads(1)
    different = [
        f"{program.path}: {what}"
        for program in map(generate, range(options.first, options.first + options.programs))
        for what in differences(program)
    ]
    print(*different, sep="\n")
    print(f"{options.programs} programs, {len(different)} differences")
    return 1 if different else 0


def differences(program: Program) -> Iterator[str]:
    """What a watch changed, in the outcome of a program or in torch itself."""
    plain, before = run(program, False), patched_places()
    watched = run(program, True)
    for place, value in patched_places().items():
        if value is not before[place]:
            yield f"{place} is not put back"
    for name in sorted({*plain, *watched}):
        if plain.get(name) != watched.get(name):
            yield name


@cache
def places() -> tuple[tuple[Any, str], ...]:
    """Every attribute that a watch puts something of its own into."""
    watch = Watch(lambda error, fault: None)
    watch.start()
    watch.stop()
    return tuple(watch.instruments.patches.places)


def patched_places() -> dict[str, Any]:
    """What stands in those places now, and how many hooks and modes there are."""
    found = {f"{getattr(owner, '__name__', owner)}.{name}": vars(owner).get(name) for owner, name in places()}
    found["optimizer hooks"] = len(optimizer._global_optimizer_pre_hooks) + len(
        optimizer._global_optimizer_post_hooks
    )
    return {**found, "modes": len(_get_current_function_mode_stack())}


def run(program: Program, is_watched: bool) -> dict[str, Any]:
    """The outcome of a program: the bits of its tensors and gradients, and its error."""
    random.seed(0)
    torch.manual_seed(0)
    linecache.cache[program.path] = (len(program.text), None, program.text.splitlines(True), program.path)
    sites.claim_file(program.path)
    space: dict[str, Any] = {"__name__": "program"}
    outcome: dict[str, Any] = {}
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with gradsight.watch(report=False) if is_watched else contextlib.nullcontext():
                exec(compile(program.text, program.path, "exec"), space)
        except Exception as error:
            outcome["error"] = f"{type(error).__name__}: {error}"
        finally:
            torch.set_grad_enabled(True)
    for name, value in space.items():
        if not name.startswith("__"):
            outcome.update(_of_value(name, value))
    return outcome


def _of_value(name: str, value: Any, depth: int = 2) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield name, _bits(value)
        # Of a view that torch no longer lets anybody use it does not even tell whether it is a leaf.
        with contextlib.suppress(RuntimeError):
            if value.is_leaf and value.grad is not None:
                yield f"{name}.grad", _bits(value.grad)
    elif isinstance(value, torch.nn.Module):
        for inner, parameter in value.named_parameters():
            yield from _of_value(f"{name}.{inner}", parameter)
    elif depth and isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _of_value(f"{name}[{index}]", item, depth - 1)
    elif depth and isinstance(value, dict):
        for key, item in value.items():
            yield from _of_value(f"{name}[{key!r}]", item, depth - 1)
    elif isinstance(value, (int, float, str)):
        yield name, value if value == value else "nan"


def _bits(tensor: torch.Tensor) -> Any:
    try:
        plain = tensor.detach().resolve_conj().resolve_neg()
    except RuntimeError as refused:
        return str(refused)
    if plain.layout is not torch.strided or plain.device.type == "meta":
        return str(plain.shape)
    flat = plain.clone(memory_format=torch.contiguous_format).reshape(-1)
    return plain.dtype, tuple(plain.shape), flat.view(torch.uint8).numpy().tobytes()


if __name__ == "__main__":
    sys.exit(main())
