"""Names for leaves and tensors, found in the variables of the user's frames and in the modules they hold."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from types import BuiltinFunctionType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from gradsight.agent.numbering import is_trainable_leaf
from gradsight.agent.shadow import Shadow
from gradsight.agent.sites import is_user_file, user_frames

_MOST_ITEMS = 200
_CALLS = torch.nn.Module._call_impl.__code__
_NO_HOLDERS = (type, ModuleType, FunctionType, MethodType, BuiltinFunctionType)


def name_leaves(shadow: Shadow) -> None:
    """Gives every leaf that has no name yet the name under which user code can reach it."""
    missing = {
        id(leaf.tensor()): leaf for leaf in shadow.leaves if not leaf.name and leaf.tensor() is not None
    }
    if not missing:
        return
    for name, tensor in reachable_leaves():
        leaf = missing.pop(id(tensor), None)
        if leaf is not None:
            leaf.name = name
            if not missing:
                return


def reachable_leaves() -> Iterator[tuple[str, torch.Tensor]]:
    """Leaf tensors by name: outermost scopes first, modules before single tensors."""
    scopes = list(_scopes())
    for scope in scopes:
        for name, value in scope:
            if isinstance(value, torch.nn.Module):
                yield from _of_module("" if name == "self" else name, value)
    for scope in scopes:
        for name, value in scope:
            yield from _of_value(name, value, depth=2)


def reachable_modules() -> Iterator[torch.nn.Module]:
    """Modules that variables of the user's code hold, outermost scopes first."""
    for scope in list(_scopes()):
        for name, value in scope:
            if isinstance(value, torch.nn.Module):
                yield value
            elif name == "self" and hasattr(value, "__dict__"):
                yield from (each for each in vars(value).values() if isinstance(each, torch.nn.Module))


class CalledModules:
    """The outermost modules that were running when a call was made: they know names when no variable is left that does."""

    def __init__(self) -> None:
        self._modules: dict[int, weakref.ref[torch.nn.Module]] = {}

    def note(self) -> None:
        """Looks at the frames of torch that call a `forward`, the outermost last."""
        found: Any = None
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code is _CALLS:
                found = frame.f_locals.get("self")
            frame = frame.f_back
        if isinstance(found, torch.nn.Module) and id(found) not in self._modules:
            self._modules[id(found)] = weakref.ref(found)

    def names(self) -> dict[int, str]:
        """Their parameters by identity: `Net.encoder.weight`."""
        modules = [module for each in self._modules.values() if (module := each()) is not None]
        return {
            id(parameter): f"{type(module).__name__}.{name}"
            for module in modules
            for name, parameter in module.named_parameters()
        }


def _scopes() -> Iterator[list[tuple[str, Any]]]:
    frames: list[FrameType] = list(user_frames())
    main = sys.modules.get("__main__")
    if main is not None and is_user_file(getattr(main, "__file__", None) or ""):
        yield _variables(vars(main))
    for frame in reversed(frames):
        yield _variables(frame.f_locals)


def _variables(scope: Any) -> list[tuple[str, Any]]:
    return [
        (name, value)
        for name, value in list(scope.items())
        if isinstance(name, str) and not name.startswith("__") and not isinstance(value, (ModuleType, type))
    ]


def _of_module(prefix: str, module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for name, parameter in module.named_parameters():
        yield (f"{prefix}.{name}" if prefix else name), parameter
    for path, child in module.named_modules():
        for attribute, value in list(vars(child).items()):
            if attribute.startswith("_") or isinstance(value, torch.nn.Module):
                continue
            where = ".".join(part for part in (prefix, path, attribute) if part)
            if isinstance(value, (list, tuple, dict, torch.Tensor)):
                yield from _of_value(where, value, depth=2)


def _of_value(name: str, value: Any, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        if is_trainable_leaf(value):
            yield name, value
    elif isinstance(value, torch.nn.Module):
        yield from _of_module(name, value)
    elif depth and isinstance(value, (list, tuple)):
        for index, item in enumerate(value[:_MOST_ITEMS]):
            yield from _of_value(f"{name}[{index}]", item, depth - 1)
    elif depth and isinstance(value, dict):
        for key, item in list(value.items())[:_MOST_ITEMS]:
            yield from _of_value(f"{name}[{key!r}]", item, depth - 1)
    elif depth and hasattr(value, "__dict__") and not isinstance(value, _NO_HOLDERS):
        for attribute, item in list(vars(value).items())[:_MOST_ITEMS]:
            if isinstance(attribute, str) and not attribute.startswith("__"):
                joined = attribute if name == "self" else f"{name}.{attribute}"
                yield from _of_value(joined, item, depth - 1)
