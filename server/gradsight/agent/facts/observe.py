"""Runs one call of one operator in chosen requires_grad patterns and notes what torch did.

A *call* is a template: arguments whose tensors are copied for every run.  A *place* names a tensor in it: a parameter
(`other`), an element of a list parameter (`tensors[1]`), or an outcome (`result`, `result.0`).  A *pattern* is the set of
places that require grad.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Callable

import torch
from torch import Tensor

from gradsight.agent.facts.signatures import Signature

Pattern = frozenset[str]


@dataclass
class CallTemplate:
    """Template of a call: positional and keyword arguments."""

    positional: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)


@dataclass
class Run:
    """One execution: arguments by place, outcome tensors by place, and what the outcome is made of."""

    arguments: dict[str, Tensor]
    leaves: dict[str, Tensor]
    outcome: Any
    results: dict[str, Tensor]
    versions: dict[str, int]
    contents: dict[str, Tensor]
    constant: frozenset[str] = frozenset()
    """Places that are never made to require grad, such as a module's buffers."""


@dataclass
class Target:
    """A callable under observation with the signature that names its arguments."""

    function: Callable[..., Any]
    signature: Signature

    def run(
        self,
        call: CallTemplate,
        pattern: Pattern,
        seed: int = 0,
        keep_contents: bool = False,
        as_leaf: bool = False,
    ) -> Run:
        """Execute on fresh copies.

        Arguments that require grad are non-leaf unless `as_leaf`, so that in-place forms are allowed.
        """
        positional, keywords, arguments, leaves = fresh_arguments(self.signature, call, pattern, as_leaf)
        versions = {place: tensor._version for place, tensor in arguments.items()}
        contents = (
            {place: tensor.detach().clone() for place, tensor in arguments.items()} if keep_contents else {}
        )
        seed_cpu(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = self.function(*positional, **keywords)
        return Run(arguments, leaves, outcome, dict(named_results(outcome)), versions, contents)


def seed_cpu(seed: int) -> None:
    """Seed the CPU generator alone: `torch.manual_seed` asks every device, which takes longer than most operators."""
    torch.default_generator.manual_seed(seed)


def fresh_arguments(
    signature: Signature, call: CallTemplate, pattern: Pattern, as_leaf: bool = False
) -> tuple[list[Any], dict[str, Any], dict[str, Tensor], dict[str, Tensor]]:
    """Copies of the call's arguments, with the tensors among them by place."""
    arguments: dict[str, Tensor] = {}
    leaves: dict[str, Tensor] = {}

    def copy(value: Any, place: str) -> Any:
        if isinstance(value, Tensor):
            leaf = value.detach().clone()
            used = leaf
            if place in pattern:
                leaf.requires_grad_(True)
                used = leaf if as_leaf else leaf.clone()
                leaves[place] = leaf
            arguments[place] = used
            return used
        if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
            copies = [copy(each, f"{place}[{index}]") for index, each in enumerate(value)]
            return type(value)(*copies) if hasattr(value, "_fields") else type(value)(copies)
        return value

    positional = []
    for index, (place, value) in enumerate(zip(positional_places(signature, call), call.positional)):
        positional.append(copy(value, place or f"argument{index}"))
    keywords = {
        name: copy(value, signature.synonyms.get(name, name)) for name, value in call.keywords.items()
    }
    return positional, keywords, arguments, leaves


def positional_places(signature: Signature, call: CallTemplate) -> list[str]:
    """The place of each positional argument; elements of a collecting parameter are numbered."""
    places = []
    rest = call.positional[len(signature.positional) :]
    packed = len(rest) == 1 and isinstance(rest[0], (list, tuple, torch.Size))
    for index, value in enumerate(call.positional):
        if index < len(signature.positional):
            name = signature.positional[index]
            if name in signature.by_tensor and isinstance(value, Tensor):
                name = signature.by_tensor[name]
            places.append(name)
        elif signature.varargs and packed:
            places.append(signature.varargs)
        elif signature.varargs:
            places.append(f"{signature.varargs}[{index - len(signature.positional)}]")
        else:
            raise TypeError("more arguments than parameters")
    return places


def named_results(outcome: Any, place: str = "result") -> Iterator[tuple[str, Tensor]]:
    """The tensors that came out: `result`, or `result.0`, `result.1`, ... numbered through nested tuples."""
    if isinstance(outcome, Tensor):
        yield place, outcome
        return
    for index, tensor in enumerate(_tensors_in(outcome)):
        yield f"{place}.{index}", tensor


def _tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        for each in value:
            yield from _tensors_in(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors_in(each)


# The parameters of a stacked module: they require grad together, as they do in a training script.
TOGETHER = "self.parameters"


def leaves_at(run: Run, place: str) -> list[Tensor]:
    """The leaves behind a place; behind `self.parameters` there are many."""
    if place == TOGETHER:
        return [leaf for name, leaf in run.leaves.items() if name.startswith(TOGETHER + "[")]
    return [run.leaves[place]] if place in run.leaves else []


def can_require_grad(tensor: Tensor) -> bool:
    """Floating and complex tensors can; integers and booleans cannot."""
    return bool(tensor.is_floating_point() or tensor.is_complex())


def storage_of(tensor: Tensor) -> int | None:
    """Where the storage lies, or None for layouts without one; two storages may lie on the same memory (`from_dlpack`)."""
    try:
        if tensor.layout is not torch.strided:
            return None
        storage = tensor.untyped_storage()
        return int(storage.data_ptr()) or int(storage._cdata)
    except (RuntimeError, AttributeError):
        return None


def share_storage(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors look at the same memory; for sparse tensors whether their parts do."""
    if one is other:
        return True
    mine, theirs = _parts(one), _parts(other)
    return any(
        storage_of(a) is not None and storage_of(a) == storage_of(b) and a.numel() > 0 and b.numel() > 0
        for a in mine
        for b in theirs
    )


def _parts(tensor: Tensor) -> list[Tensor]:
    if tensor.layout is torch.sparse_coo:
        return [tensor._values(), tensor._indices()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
        return [tensor.values()]
    return [tensor]


# Older torch does not show the tensor inside a saved variable; there only bumping versions tells what is kept.
CAN_WALK = hasattr(torch._C._autograd.SavedTensor, "data")
_raw_attributes: dict[type, list[str]] = {}


def saved_tensors(results: list[Tensor]) -> list[Tensor]:
    """Every tensor that a node of the results' graph keeps for backward, as it was stored."""
    seen = set()
    todo = [tensor.grad_fn for tensor in results if tensor.grad_fn is not None]
    found = []
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        kind = type(node)
        if kind not in _raw_attributes:
            _raw_attributes[kind] = [name for name in dir(kind) if name.startswith("_raw_saved_")]
        for name in _raw_attributes[kind]:
            try:
                raw = getattr(node, name)
            except RuntimeError:
                continue
            for each in raw if isinstance(raw, (list, tuple)) else [raw]:
                data = getattr(each, "data", None) if each is not None else None
                if isinstance(data, Tensor):
                    found.append(data)
        todo += [following for following, _ in node.next_functions if following is not None]
    return found


def only_node(run: Run) -> str:
    """The name of the node when the call made exactly one, else empty.  Arguments are clones of leaves."""
    found = set()
    todo = [tensor.grad_fn for tensor in run.results.values() if tensor.grad_fn is not None]
    while todo:
        node = todo.pop()
        name = node.name()
        if name in ("CloneBackward0", "torch::autograd::AccumulateGrad"):
            continue
        found.add(node)
        if len(found) > 1:
            return ""
        todo += [following for following, _ in node.next_functions if following is not None]
    return str(next(iter(found)).name()) if found else ""


def saved_places(run: Run) -> list[str]:
    """Arguments and results whose storage the graph keeps.  A result that is an argument is told as the result.

    torch keeps the *new* content of a tensor written in place, never the old one.
    """
    kept = {
        storage_of(tensor) for tensor in saved_tensors([r for r in run.results.values() if r.requires_grad])
    }
    kept.discard(None)
    written = {place for place, tensor in run.arguments.items() if tensor._version != run.versions[place]}
    found = []
    argument_storages = set()
    for place, tensor in run.arguments.items():
        argument_storages.add(storage_of(tensor))
        if storage_of(tensor) in kept and tensor.numel() > 0 and place not in written:
            found.append(place)
    written_storages = {storage_of(run.arguments[place]) for place in written}
    for place, tensor in run.results.items():
        storage = storage_of(tensor)
        if storage in kept and tensor.numel() > 0:
            if storage not in argument_storages or storage in written_storages:
                found.append(place)
    return found


def differentiable_results(run: Run) -> list[Tensor]:
    """Results through which a backward pass can start.  torch may crash on a gradient of an empty one."""
    return [tensor for tensor in run.results.values() if tensor.requires_grad and tensor.numel() > 0]


def backward(results: list[Tensor], leaves: list[Tensor], retain: bool = False) -> list[Tensor | None]:
    """Gradients of the leaves for a positive random cotangent."""
    generator = torch.Generator().manual_seed(7)
    cotangents = []
    for tensor in results:
        wide = torch.complex128 if tensor.is_complex() else torch.float64
        cotangent = torch.rand(tensor.shape, generator=generator, dtype=wide).add_(0.5)
        cotangents.append(cotangent.to(tensor.dtype))
    return list(torch.autograd.grad(results, leaves, cotangents, retain_graph=retain, allow_unused=True))
