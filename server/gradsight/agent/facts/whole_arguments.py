"""Which arguments of torch's operators take whole numbers and flags alone, found by giving them fractions."""

from __future__ import annotations

from typing import Any, Callable

from torch import Tensor

from gradsight.agent.facts import catalog
from gradsight.agent.facts.drawing import Calls
from gradsight.agent.facts.observe import CallTemplate
from gradsight.agent.facts.signatures import Signatures
from gradsight.agent.facts.torch_samples import TorchSamples
from gradsight.agent.facts.traits import NOTHING, copied, outcome_of, tensors_of, usable


def survey_whole_arguments(samples: TorchSamples, own: Calls) -> dict[str, list[str]]:
    """`gather.index`: performed with whole numbers or flags, and refused with fractions, in every call."""
    signatures = Signatures()
    takes: dict[str, bool] = {}
    for entry in catalog.functions():
        signature = signatures.find(entry.path, entry.target)
        if signature is None:
            continue
        short = entry.name.rpartition(".")[2]
        for call in usable([*own.get(entry.name, ()), *samples.calls(entry.name)]):
            try:
                bound = signature.bind(call.positional, call.keywords)
            except TypeError:
                continue
            for name, value in bound.items():
                given = list(tensors_of(value))
                # An index without elements is taken whatever its dtype.
                if given and all(each.numel() for each in given):
                    key = f"{short}.{name}"
                    takes[key] = takes.get(key, True) and _is_whole_only(entry.target, call, given)
    return {"whole-arguments": sorted(key for key, holds in takes.items() if holds)}


def _is_whole_only(function: Callable[..., Any], call: CallTemplate, given: list[Tensor]) -> bool:
    """Whether the call is performed as it is, and refused where these tensors are of floating numbers."""
    if any(each.is_floating_point() or each.is_complex() for each in given):
        return False

    def floating(tensor: Tensor) -> Tensor:
        changed = tensor.float() if any(tensor is each for each in given) else tensor
        return changed.detach().clone()

    is_performed = outcome_of(function, call) is not NOTHING
    return is_performed and outcome_of(function, copied(call, floating), fresh=False) is NOTHING
