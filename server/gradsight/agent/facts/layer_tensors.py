"""What a layer of `torch.nn` is made with and holds: its constructor's options, and its own tensors by name.

A tensor's *sizes* are names of options where changing the option, and no other, changes the size with it.  A *switch* is a
boolean option without which the tensor is not there.  A tensor is *counted* by an option if there is one of it for each
number below that option (`weight_ih_l0`, `weight_ih_l1`): its name is told with `{option}` in place of the number.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from gradsight.agent.facts import catalog
from gradsight.agent.facts.modules import STACKED, Construction, literal, option_signature
from gradsight.agent.facts.signatures import Signature

# Stands for an option of a layer that no sample constructs.
USUAL_SIZE = 4
# `nn.LSTM` has a projection where its size is not 0.
SIZES_THAT_SWITCH = ("proj_size",)


@dataclass(frozen=True)
class Held:
    """One tensor of a module: parameter or buffer, and its sizes; None for a lazy one."""

    kind: str
    sizes: tuple[int, ...] | None


Options = dict[str, Any]


def survey_layers(constructions: dict[str, list[Construction]]) -> Iterator[dict[str, Any]]:
    """One fact per class of `torch.nn` that can be constructed and called."""
    for entry in catalog.modules():
        kind: Any = entry.target
        if kind.forward is torch.nn.Module.forward or issubclass(kind, torch.nn.Sequential):
            continue
        signature = option_signature(kind)
        given = [_bound(signature, each) for each in constructions.get(entry.name, ())]
        required = [name for name in signature.positional if name not in signature.defaults]
        if _sized_options(kind).issuperset(required):
            given.append(dict.fromkeys(required, USUAL_SIZE))
        base = next((each for each in given if each is not None and _made(kind, each) is not None), None)
        if base is not None:
            # Only what must be given: everything else is varied from its default.
            plain = {name: base[name] for name in base if name not in signature.defaults}
            yield _layer(entry.name, kind, signature, plain if _made(kind, plain) is not None else base)


def _layer(name: str, kind: Any, signature: Signature, base: Options) -> dict[str, Any]:
    defaults = {option: literal(text) for option, text in signature.defaults.items()}
    fact: dict[str, Any] = {
        "name": name,
        "options": [*signature.positional, *signature.keyword_only],
        "defaults": {
            option: signature.defaults[option]
            for option, value in defaults.items()
            if _is_shown(kind, base, option, value)
        },
    }
    if _varies(kind, base):
        return {**fact, "varies": True, "tensors": []}
    full = {**base, **{option: on for option, (on, _) in _states(defaults).items() if option not in base}}
    if _made(kind, full) is None:
        full = base
    seen = _held(kind, full)
    without = {
        option: _held(kind, {**full, option: off})
        for option, (_, off) in _states(defaults).items()
        if option in full and option not in base
    }
    counts = _counts(kind, full, defaults, seen)
    switches = [option for option, left in without.items() if seen.keys() - left.keys()]
    fact["defaults"].update({option: signature.defaults[option] for option in switches})
    fact["tensors"] = [
        [
            counts.get(tensor, tensor),
            held.kind,
            _sizes(kind, full, defaults, tensor, held),
            sorted(option for option, left in without.items() if tensor not in left),
        ]
        for tensor, held in seen.items()
    ]
    return fact


def _states(defaults: Options) -> dict[str, tuple[Any, Any]]:
    """Options that may bring tensors, each with a value that does and one that does not."""
    found: dict[str, tuple[Any, Any]] = {}
    for option, value in defaults.items():
        if isinstance(value, bool):
            found[option] = (True, False)
        elif option in SIZES_THAT_SWITCH:
            found[option] = (1, value)
    return found


def _bound(signature: Signature, construction: Construction) -> Options | None:
    arguments, options = construction.options
    try:
        return signature.bind(arguments, options)
    except TypeError:
        return None


def _made(kind: Any, options: Options) -> torch.nn.Module | None:
    try:
        # Names and sizes are asked for, never values: without memory a layer is made in no time.
        with warnings.catch_warnings(), torch.device("meta"):
            warnings.simplefilter("ignore")
            made: torch.nn.Module = kind(**options)
            return made
    except Exception:
        return None


def _held(kind: Any, options: Options) -> dict[str, Held]:
    module = _made(kind, options)
    found: dict[str, Held] = {}
    if module is not None:
        lazy = torch.nn.parameter.is_lazy
        for word, tensors in (("parameter", module.named_parameters()), ("buffer", module.named_buffers())):
            for name, tensor in tensors:
                found[name] = Held(word, None if lazy(tensor) else tuple(tensor.shape))
    return found


def _counts(kind: Any, full: Options, defaults: Options, seen: dict[str, Held]) -> dict[str, str]:
    """Of the tensors numbered 0: their names with the option in place of the number."""
    found: dict[str, str] = {}
    for option, value in defaults.items():
        if type(value) is int and value == 1:
            further = _held(kind, {**full, option: 2}).keys() - seen.keys()
            for name in seen:
                if name.replace("0", "1") in further:
                    found[name] = name.replace("0", f"{{{option}}}")
    return found


def _sized_options(kind: Any) -> set[str]:
    """Options that take one whole number and nothing else."""
    parameters = inspect.signature(kind.__init__).parameters.values()
    return {each.name for each in parameters if each.annotation in (int, "int")}


def _sizes(kind: Any, full: Options, defaults: Options, tensor: str, held: Held) -> list[str] | None:
    """The option behind each size, or None where one of them is not simply an option."""
    if held.sizes is None:
        return None
    changes: list[tuple[str, int, tuple[int, ...] | None]] = []
    for option, value in {**defaults, **full}.items():
        if type(value) is int and value > 0:
            other = _held(kind, {**full, option: 2 * value}).get(tensor)
            if other is not None:
                changes.append((option, value, other.sizes))
    names = []
    for place, size in enumerate(held.sizes):
        moved = [
            (option, value, sizes)
            for option, value, sizes in changes
            if sizes is None or len(sizes) != len(held.sizes) or sizes[place] != size
        ]
        if len(moved) != 1 or moved[0][0] not in _sized_options(kind):
            return None
        option, value, sizes = moved[0]
        if size != value or sizes is None or len(sizes) != len(held.sizes) or sizes[place] != 2 * value:
            return None
        names.append(option)
    return names


def _varies(kind: Any, base: Options) -> bool:
    """Whether the names follow from a list or a module that is given, so that no option by itself tells them."""
    if issubclass(kind, STACKED) and not issubclass(kind, torch.nn.RNNBase):
        return True
    names = _held(kind, base).keys()
    for option, value in base.items():
        if isinstance(value, (list, tuple)) and value and type(value[-1]) is int:
            longer = _held(kind, {**base, option: [*value, value[-1] + 1]}).keys()
            if longer and longer != names:
                return True
    return False


def _is_shown(kind: Any, base: Options, option: str, value: Any) -> bool:
    """Whether the module shows the default under the option's name."""
    if not isinstance(value, (bool, int, float, str, type(None))) or option in base:
        return False
    shown = getattr(_made(kind, base), option, NOTHING)
    return shown is not NOTHING and type(shown) is type(value) and shown == value


NOTHING = object()
