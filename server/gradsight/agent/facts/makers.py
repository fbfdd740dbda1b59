"""What makes and trains tensors: factories by what they are given, `_foreach_` writes, optimizers that remember."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from gradsight.agent.facts import catalog

SHAPE = (2, 3)
# What a factory may be given besides a size: numbers, and the size as one tuple somewhere among them.
TUPLE_CALLS: tuple[tuple[Any, ...], ...] = (
    (SHAPE, 1.5),
    (5, SHAPE),
    (0.0, 1.0, SHAPE),
    (SHAPE, (0, 1)),
    (SHAPE, (3, 1)),
)
NUMBER_CALLS: tuple[tuple[Any, ...], ...] = ((5,), (0, 5), (0, 5, 4), (3, 4))
FLOAT_CALLS: tuple[tuple[Any, ...], ...] = ((5.0,), (0.0, 5.0), (0.0, 5.0, 4))


def survey_makers() -> dict[str, list[str]]:
    """Names by trait: factories, `_foreach_` writes and optimizers."""
    sized, by_tuple, rows, matrices, whole = [], [], [], [], []
    for entry in catalog.factories():
        name = entry.name.rpartition(".")[2]
        if _shape(entry.target, *SHAPE) == SHAPE and _shape(entry.target, 2) == (2,):
            sized.append(name)
        elif any(_shape(entry.target, *arguments) == SHAPE for arguments in TUPLE_CALLS):
            by_tuple.append(name)
        else:
            made = [
                each for each in (_called(entry.target, *given) for given in NUMBER_CALLS) if each is not None
            ]
            ranks = {each.dim() for each in made}
            if ranks == {1}:
                rows.append(name)
            elif ranks == {2}:
                matrices.append(name)
        if _gives_whole_numbers(entry.target):
            whole.append(name)
    like = [name for name in dir(torch) if name.endswith("_like") and _is_like(getattr(torch, name))]
    return {
        "sized": sorted(sized),
        "sized-by-tuple": sorted(by_tuple),
        "row-of-numbers": sorted(rows),
        "matrix-of-numbers": sorted(matrices),
        "whole-numbers": sorted(whole),
        "like": sorted(like),
        "foreach-holds-nothing": sorted(filter(_holds_nothing, _foreach_writes())),
        "optimizers": sorted(entry.name.rpartition(".")[2] for entry in catalog.optimizers()),
        "remembers-gradients": sorted(
            entry.name.rpartition(".")[2] for entry in catalog.optimizers() if _remembers(entry.target)
        ),
        "goes-by-earlier-steps": sorted(
            entry.name.rpartition(".")[2]
            for entry in catalog.optimizers()
            if not _takes_closure(entry.target) and _goes_by_earlier_steps(entry.target)
        ),
    }


def _called(function: Any, *arguments: Any) -> torch.Tensor | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = function(*arguments)
    except Exception:
        return None
    return made if isinstance(made, torch.Tensor) else None


def _is_like(function: Any) -> bool:
    """Whether the result has the shape and dtype of the tensor that is given, a number besides or not."""
    given = torch.full(SHAPE, 2.5, dtype=torch.float64)
    results = [each for each in (_called(function, given), _called(function, given, 3)) if each is not None]
    return bool(results) and all(each.shape == given.shape and each.dtype == given.dtype for each in results)


def _shape(function: Any, *arguments: Any) -> tuple[int, ...] | None:
    made = _called(function, *arguments)
    return None if made is None else tuple(made.shape)


def _gives_whole_numbers(function: Any) -> bool:
    """Whether whole numbers come out where nothing is said about the dtype, of fractions too."""
    made = [_called(function, *given) for given in (*NUMBER_CALLS, *TUPLE_CALLS[1:2], SHAPE)]
    fractions = [_called(function, *given) for given in FLOAT_CALLS]
    dtypes = {each.dtype for each in (*made, *fractions) if each is not None}
    return dtypes == {torch.int64}


def _foreach_writes() -> list[str]:
    return [
        name[len("_foreach_") :]
        for name in dir(torch)
        if name.startswith("_foreach_") and name.endswith("_") and not name.endswith("__")
    ]


def _holds_nothing(name: str) -> bool:
    """Whether the write by a number can be gone through twice by backward."""
    leaf = torch.rand(3, requires_grad=True)
    written = [leaf.clone()]
    try:
        getattr(torch, f"_foreach_{name}")(written, 2.0)
        total = written[0].sum()
        total.backward()
        total.backward()
    except Exception:
        return False
    return True


def _remembers(kind: Any) -> bool:
    """Whether a step still moves a parameter whose gradient has become zero; decay is switched off."""
    if _moved_after_zeros(kind, 0):
        return False
    return _moved_after_zeros(kind, 2)


def _takes_closure(kind: Any) -> bool:
    """Whether `step` calls the closure again and again: such an optimizer goes several steps in one."""
    calls: list[None] = []
    parameter = torch.nn.Parameter(torch.ones(2))

    def closure() -> torch.Tensor:
        calls.append(None)
        parameter.grad = parameter.detach().clone()
        return (parameter.detach() ** 2).sum() / 2

    try:
        kind([parameter]).step(closure)
    except Exception:
        return False
    return len(calls) > 1


def _goes_by_earlier_steps(kind: Any) -> bool:
    """Whether an optimizer that is made anew before each step moves a parameter to another place."""
    kept, anew = _moved_by_steps(kind, False), _moved_by_steps(kind, True)
    if kept is None or anew is None:
        return False
    return bool((kept - anew).abs().max() > kept.abs().max() / 100)


def _moved_by_steps(kind: Any, is_made_anew: bool) -> torch.Tensor | None:
    """How far some steps move a parameter."""
    torch.manual_seed(0)
    parameter = torch.nn.Parameter(torch.ones(4, 3))
    sparse = kind.__name__ == "SparseAdam"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer = kind([parameter])
            for _ in range(12):
                if is_made_anew:
                    optimizer = kind([parameter])
                gradient = torch.rand(4, 3)
                parameter.grad = gradient.to_sparse() if sparse else gradient
                optimizer.step()
    except Exception:
        return None
    return parameter.detach() - 1


def _moved_after_zeros(kind: Any, rounds: int) -> bool:
    torch.manual_seed(0)
    parameter = torch.nn.Parameter(torch.rand(4, 3))
    sparse = kind.__name__ == "SparseAdam"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer = kind([parameter])
            for group in optimizer.param_groups:
                group.update({name: 0.0 for name in ("weight_decay", "lambd") if name in group})

            def step(gradient: torch.Tensor) -> None:
                parameter.grad = gradient.to_sparse() if sparse and gradient.any() else gradient
                if sparse and not gradient.any():
                    places = torch.ones_like(gradient).to_sparse()
                    parameter.grad = torch.sparse_coo_tensor(
                        places.indices(), torch.zeros(places.values().shape), gradient.shape
                    ).coalesce()
                optimizer.step(lambda: torch.tensor(0.0))

            for _ in range(rounds):
                step(torch.rand(4, 3) + 0.5)
            before = parameter.detach().clone()
            step(torch.zeros(4, 3))
    except Exception:
        return False
    return not torch.equal(before, parameter.detach())
