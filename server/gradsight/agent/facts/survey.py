"""Surveys a whole torch: every public callable is measured and told as plain data."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Tuple

import torch

from gradsight.agent.facts import catalog
from gradsight.agent.facts.cases import cases_of
from gradsight.agent.facts.measure import CallFailed, Observation, features, measure
from gradsight.agent.facts.observe import Call, Target
from gradsight.agent.facts.signatures import Signature, Signatures
from gradsight.agent.facts.torch_samples import TorchSamples

CALLS_PER_LOOK = 6
CALLS_PER_NAME = 48


def measured_calls(target: Any, calls: Iterable[Call]) -> List[Observation]:
    """Observations of the calls that fit; calls that look alike are tried a few times only."""
    found: List[Observation] = []
    tried: Dict[Tuple[Any, ...], int] = {}
    for call in calls:
        if len(found) >= CALLS_PER_NAME:
            break
        try:
            look = tuple(
                sorted(features(target.signature, target.signature.bind(call.positional, call.keywords)).items())
            )
        except TypeError:
            continue
        if tried.get(look, 0) >= CALLS_PER_LOOK:
            continue
        try:
            seen = measure(target, call)
        except CallFailed:
            continue
        tried[look] = tried.get(look, 0) + 1
        found.append(seen)
    return found


def told(name: str, signature: Signature, observations: List[Observation]) -> Dict[str, Any]:
    """A fact as plain data."""
    fact = described(name, signature)
    fact["cases"] = cases_of(observations)
    return fact


def described(name: str, signature: Signature) -> Dict[str, Any]:
    """The part of a fact that the signature tells."""
    keyword_only = [each for each in signature.keyword_only if not (name.startswith("Tensor.") and each == "out")]
    collecting = ["*" + signature.varargs] if signature.varargs else []
    fact: Dict[str, Any] = {
        "name": name,
        "parameters": [*signature.positional, *collecting, *keyword_only],
        "keyword_only": keyword_only,
        "defaults": {key: value for key, value in signature.defaults.items() if key != "out" or "out" in keyword_only},
    }
    if signature.by_tensor:
        fact["by_tensor"] = dict(signature.by_tensor)
    if signature.synonyms:
        fact["synonyms"] = dict(signature.synonyms)
    return fact


def survey_functions(samples: TorchSamples) -> Iterator[Tuple[Dict[str, Any], List[Observation]]]:
    """Facts of functions, methods, properties and factories, each with the observations behind it."""
    signatures = Signatures()
    for entry in catalog.functions():
        signature = signatures.find(entry.path, entry.target)
        if signature is None:
            continue
        target = Target(entry.target, signature)
        observations = measured_calls(target, samples.calls(entry.name))
        if observations:
            yield told(entry.name, signature, observations), observations
