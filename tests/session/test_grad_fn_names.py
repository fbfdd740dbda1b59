"""The names given to recorded operations are those that torch gives, on the samples of torch's own operator tests."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Iterable
from typing import Any

import pytest
import torch

from gradsight.agent.facts.torch_samples import import_databases
from gradsight.interp.paths.grad_fns import OTHER, OWN, WRITTEN_INSIDE, name_of

MOST_SAMPLES = 12
# Operators of these rooms have the short name of another one and do something else.
OTHER_ROOMS = ("masked.", "sparse.", "_", "signal", "torch.")


def tensors_in(value: Any) -> Iterable[torch.Tensor]:
    """The tensors of a result."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)


def measured() -> tuple[dict[str, set[str]], set[str]]:
    """The names each operator is recorded under, and the operators whose own result was written before it came out."""
    op_db, _, trouble = import_databases()
    assert not trouble

    names: dict[str, set[str]] = {}
    written: set[str] = set()
    for info in op_db:
        if (
            info.name.startswith(OTHER_ROOMS)
            or not info.supports_autograd
            or torch.float32 not in info.dtypes
        ):
            continue
        short = info.name.rpartition(".")[2]
        for sample in itertools.islice(
            info.sample_inputs("cpu", torch.float32, requires_grad=True), MOST_SAMPLES
        ):
            given = [sample.input, *sample.args]
            known = {one.data_ptr() for one in tensors_in(given) if one.layout is torch.strided}
            for result in tensors_in(info.op(*given, **sample.kwargs)):
                if result.layout is torch.strided and result._base is None and result.data_ptr() not in known:
                    written |= {short} if result._version else set()
                if result.grad_fn is not None:
                    names.setdefault(short, set()).add(re.sub(r"Backward\d*$", "", result.grad_fn.name()))
    return names, written


@pytest.mark.facts
def test_torch_gives_these_names_in_every_sample() -> None:
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names, written = measured()
    known = {op: found for op, found in names.items() if name_of(op)}
    wrong = {op: found for op, found in known.items() if found != {name_of(op)}}
    assert wrong == {}
    assert len(known) > 150
    assert {*OWN.split()} - {name_of(op) for op in known} <= {"Relu", "Rsub", "Mm", "Zero", "Fill"}
    assert set(OTHER) & set(names) <= set(known)
    assert {op for op in written if not op.endswith("_")} - WRITTEN_INSIDE == set()
