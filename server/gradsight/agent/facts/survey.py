"""Surveys a whole torch: every public callable is measured and told as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gradsight.agent.facts import catalog
from gradsight.agent.facts.cases import cases_of
from gradsight.agent.facts.measure import CallFailed, Observation, features, measure
from gradsight.agent.facts.modules import (
    Construction,
    forward_signature,
    observe_module,
    option_signature,
)
from gradsight.agent.facts.observe import Call, Target
from gradsight.agent.facts.signatures import Signature, Signatures
from gradsight.agent.facts.torch_samples import TorchSamples
from gradsight.agent.facts.variants import variants_of, with_other_layout

CALLS_PER_LOOK = 5
CALLS_PER_NAME = 40
VARIED_CALLS = 3


def measured_calls(target: Any, calls: Iterable[Call]) -> list[Observation]:
    """Observations of the calls that fit, and of variants of the first ones; calls that look alike are few."""
    found: list[Observation] = []
    fitting: list[Call] = []
    tried: dict[tuple[Any, ...], int] = {}

    def attempt(call: Call, allowed: int, usual: bool = True) -> None:
        look = _look(target.signature, call)
        if look is None or tried.get(look, 0) >= allowed:
            return
        try:
            seen = measure(target, call)
        except CallFailed:
            return
        seen.usual = usual
        found.append(seen)
        tried[look] = tried.get(look, 0) + 1
        fitting.append(call)

    for call in calls:
        if len(found) >= CALLS_PER_NAME:
            break
        attempt(call, CALLS_PER_LOOK)
    for call in fitting[:VARIED_CALLS]:
        for variant in variants_of(call, target.signature):
            attempt(variant, CALLS_PER_LOOK + VARIED_CALLS)
        attempt(with_other_layout(call), CALLS_PER_LOOK + 2 * VARIED_CALLS, usual=False)
    return found


def _look(signature: Signature, call: Call) -> tuple[Any, ...] | None:
    known = {
        *signature.positional,
        *signature.keyword_only,
        *signature.synonyms,
        *signature.by_tensor.values(),
    }
    if signature.varargs:
        known.add(signature.varargs)
    if not known.issuperset(call.keywords):
        return None
    try:
        return tuple(sorted(features(signature, signature.bind(call.positional, call.keywords)).items()))
    except TypeError:
        return None


def told(name: str, signature: Signature, observations: list[Observation]) -> dict[str, Any]:
    """A fact as plain data."""
    fact = described(name, signature)
    fact["cases"] = cases_of(observations)
    names = {*signature.positional, *signature.keyword_only}
    makes_leaf = "requires_grad" in names and name != "Tensor.requires_grad_"
    for case in fact["cases"]:
        if name == "Tensor.__setitem__":
            case["returns"] = "none"
        if makes_leaf and case["returns"] == "tensor":
            case["outputs"][0]["leaf"] = True
    return fact


def described(name: str, signature: Signature) -> dict[str, Any]:
    """The part of a fact that the signature tells."""
    keyword_only = [
        each for each in signature.keyword_only if not (name.startswith("Tensor.") and each == "out")
    ]
    collecting = ["*" + signature.varargs] if signature.varargs else []
    fact: dict[str, Any] = {
        "name": name,
        "parameters": [*signature.positional, *collecting, *keyword_only],
        "keyword_only": keyword_only,
        "defaults": {
            key: value for key, value in signature.defaults.items() if key != "out" or "out" in keyword_only
        },
    }
    if signature.by_tensor:
        fact["by_tensor"] = dict(signature.by_tensor)
    if signature.synonyms:
        fact["synonyms"] = dict(signature.synonyms)
    return fact


def survey_functions(
    entries: Iterable[catalog.Entry],
    samples: TorchSamples,
    own: dict[str, list[Call]],
    signatures: Signatures,
) -> Iterator[tuple[dict[str, Any], list[Observation]]]:
    """Facts of functions, methods, properties and factories, each with the observations behind it."""
    for entry in entries:
        signature = signatures.find(entry.path, entry.target)
        if signature is None:
            continue
        target = Target(entry.target, signature)
        observations = measured_calls(target, [*own.get(entry.name, []), *samples.calls(entry.name)])
        if observations:
            yield told(entry.name, signature, observations), observations


def survey_modules(
    entries: Iterable[catalog.Entry],
    database: dict[str, list[Construction]],
    own: dict[str, list[Construction]],
) -> Iterator[tuple[dict[str, Any], list[Observation]]]:
    """Facts of the module classes."""
    for entry in entries:
        kind: Any = entry.target
        constructions = [*own.get(entry.name, []), *database.get(entry.name, [])]
        observations = observe_module(kind, constructions) if constructions else []
        if not observations:
            continue
        options = option_signature(kind)
        fact = told(entry.name, forward_signature(kind), observations)
        fact["options"] = [*options.positional, *options.keyword_only]
        fact["option_defaults"] = dict(options.defaults)
        yield fact, observations
