"""Observes the optimizers: which tensors a step writes, and whether version counters show it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import torch

from gradsight.agent.facts import catalog
from gradsight.agent.facts.signatures import Signature, signature_of_python

# Options that choose another implementation of the same step.
IMPLEMENTATIONS: tuple[dict[str, Any], ...] = ({}, {"foreach": True}, {"foreach": False}, {"fused": True})


def survey_optimizers() -> Iterator[dict[str, Any]]:
    """One fact per optimizer class."""
    for entry in catalog.optimizers():
        kind: Any = entry.target
        options = signature_of_python(kind.__init__) or Signature()
        names = [name for name in (*options.positional, *options.keyword_only) if name != "self"]
        steps = {}
        for chosen in IMPLEMENTATIONS:
            if set(chosen) <= set(names):
                seen = _step(kind, chosen)
                if seen is not None:
                    steps[repr(chosen)] = (chosen, seen)
        usual = steps.get(repr({}))
        if usual is None:
            continue
        cases = [
            _case(seen, [[name, "equals", repr(value)] for name, value in chosen.items()])
            for chosen, seen in steps.values()
            if chosen and seen != usual[1]
        ]
        cases.append(_case(usual[1], []))
        yield {
            "name": entry.name,
            "parameters": ["closure"],
            "defaults": {"closure": "None"},
            "options": names,
            "option_defaults": dict(options.defaults),
            "cases": cases,
            "note": "step() writes the parameters that have a gradient",
        }


def _case(seen: tuple[bool, bool], when: list[list[str]]) -> dict[str, Any]:
    writes, moves = seen
    case: dict[str, Any] = {"returns": "none", "no_grad": True, "holds_saved": "never"}
    if when:
        case["when"] = when
    if writes:
        case["writes"] = ["params"]
        if not moves:
            case["quiet"] = ["params"]
    return case


def _step(kind: Any, options: dict[str, Any]) -> tuple[bool, bool] | None:
    """(the step wrote the parameter, its version counter moved), or None where torch refuses the options."""
    torch.manual_seed(0)
    parameter = torch.nn.Parameter(torch.rand(4, 3))
    needed: dict[str, Any] = {} if kind.__name__ in ("LBFGS", "Adafactor", "Muon") else {"lr": 0.1}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer = kind([parameter], **needed, **options)

            def closure() -> Any:
                optimizer.zero_grad()
                loss = parameter.square().sum()
                loss.backward()
                if kind.__name__ == "SparseAdam" and parameter.grad is not None:
                    parameter.grad = parameter.grad.to_sparse()
                return loss

            closure()
            before, version = parameter.detach().clone(), parameter._version
            optimizer.step(closure)
    except Exception:
        return None
    return not torch.equal(before, parameter.detach()), parameter._version != version
