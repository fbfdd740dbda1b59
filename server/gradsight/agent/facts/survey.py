"""Surveys a whole torch: every public callable is measured and told as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from gradsight.agent.facts import catalog
from gradsight.agent.facts.cases import cases_of
from gradsight.agent.facts.measure import CallFailed, MeasuredCall, features, measure
from gradsight.agent.facts.modules import (
    Construction,
    forward_signature,
    observe_module,
    option_signature,
    spread,
)
from gradsight.agent.facts.observe import CallTemplate, Target
from gradsight.agent.facts.signatures import Signature, Signatures
from gradsight.agent.facts.torch_samples import TorchSamples
from gradsight.agent.facts.variants import reductions_of, variants_of, with_other_layout

CALLS_PER_LOOK = 3
CALLS_PER_NAME = 48
VARIED_CALLS = 3
# Losses reduce in three ways whatever else is asked of them, so more calls are varied in that.
REDUCED_CALLS = 16
# Calls on more numbers than this take long and show nothing more.
LARGE = 20_000
# Callables that choose their way by sizes and values: what was seen is told as what may happen.
CHOOSING = {
    "nn.functional.linear_cross_entropy": "chooses its algorithm by sizes and options",
    "torch.histogramdd": "bin edges may be given, counted or taken from the data",
    **{
        f"torch.{word}": "chooses its algorithm by layers, directions, dtype and layout"
        for word in ("lstm", "gru", "rnn_tanh", "rnn_relu")
    },
    "nn.AdaptiveLogSoftmaxWithLoss": "uses the parameters of those clusters only that the targets fall into",
}


def measured_calls(
    target: Any, own: Iterable[CallTemplate], samples: Iterable[CallTemplate]
) -> list[MeasuredCall]:
    """Observations of the calls that fit, and of variants of some.

    Each of our own calls was written for a reason; of torch's samples that look alike a few are enough.
    """
    found: list[MeasuredCall] = []
    fitting: list[CallTemplate] = []
    tried: dict[tuple[Any, ...], int] = {}

    def attempt(call: CallTemplate, usual: bool = True, enough: int = CALLS_PER_LOOK) -> None:
        look = _look(target.signature, call)
        if look is None or tried.get(look, 0) >= enough:
            return
        try:
            seen = measure(target, call)
        except CallFailed:
            return
        seen.usual = usual
        found.append(seen)
        tried[look] = tried.get(look, 0) + 1
        fitting.append(call)

    for call in own:
        attempt(call, enough=CALLS_PER_NAME)
    given = list(samples)
    for call in _spread(target.signature, [each for each in given if not _is_large(each)] or given):
        if len(found) >= CALLS_PER_NAME:
            break
        attempt(call)
    chosen = (
        fitting if len(fitting) <= VARIED_CALLS else [fitting[0], fitting[len(fitting) // 2], fitting[-1]]
    )
    for call in list(chosen):
        for variant in variants_of(call, target.signature):
            attempt(variant)
    for call in fitting[:REDUCED_CALLS]:
        for variant in reductions_of(call, target.signature):
            attempt(variant)
    tried.clear()
    for call in chosen:
        attempt(with_other_layout(call), usual=False)
    return found


def _is_large(call: CallTemplate) -> bool:
    tensors = [each for each in (*call.positional, *call.keywords.values()) if isinstance(each, torch.Tensor)]
    return bool(sum(each.numel() for each in tensors) > LARGE)


def _spread(signature: Signature, calls: list[CallTemplate]) -> list[CallTemplate]:
    """The calls in an order in which each look comes early, and with its most different members."""
    alike: dict[tuple[Any, ...], list[CallTemplate]] = {}
    for call in calls:
        look = _look(signature, call)
        if look is not None:
            alike.setdefault(look, []).append(call)
    ordered: list[CallTemplate] = []
    for turn in range(3):
        for group in alike.values():
            picked = {0: 0, 1: len(group) - 1, 2: len(group) // 2}[turn]
            if turn < len(group):
                ordered.append(group[picked])
    return ordered


def _look(signature: Signature, call: CallTemplate) -> tuple[Any, ...] | None:
    if not is_known_call(signature, call):
        return None
    try:
        bound = signature.bind(call.positional, call.keywords)
    except TypeError:
        return None
    options = sorted(features(signature, bound).items())
    tensors = sorted((name, _build(value)) for name, value in bound.items())
    shapes = [tuple(value.shape) for value in bound.values() if isinstance(value, torch.Tensor)]
    return (*options, *tensors, len(set(shapes)))


def _build(value: Any) -> tuple[Any, ...]:
    """Rank, dtype and layout of the tensors in an argument."""
    if isinstance(value, torch.Tensor):
        wide = value.dim() > 1 and (value.shape[-1] > value.shape[-2]) - (value.shape[-1] < value.shape[-2])
        return value.dim(), str(value.dtype), str(value.layout), int(wide)
    if isinstance(value, (list, tuple)):
        return tuple(_build(each) for each in value)
    return () if isinstance(value, (bool, int, float, complex, str, type(None))) else (repr(value)[:200],)


def is_known_call(signature: Signature, call: CallTemplate) -> bool:
    """Whether the call uses only parameters that the signature has; torch accepts a few that it does not tell."""
    known = {
        *signature.positional,
        *signature.keyword_only,
        *signature.synonyms,
        *signature.by_tensor.values(),
    }
    if not signature.varargs and len(call.positional) > len(signature.positional):
        return False
    return known.issuperset(call.keywords)


def told(
    name: str, signature: Signature, observations: list[MeasuredCall], options: Signature | None = None
) -> dict[str, Any]:
    """A fact as plain data; `options` are those of a module's constructor."""
    fact = described(name, signature)
    defaults = features(signature, {})
    if options is not None:
        defaults = {**features(options, {"training": True}), **defaults}
    fact["cases"] = cases_of(observations, defaults)
    if name in CHOOSING:
        fact["cases"] = [cautious(fact["cases"], observations)]
        fact["note"] = CHOOSING[name]
    names = {*signature.positional, *signature.keyword_only}
    makes_leaf = "requires_grad" in names and name != "Tensor.requires_grad_"
    for case in fact["cases"]:
        if name == "Tensor.__setitem__":
            case["returns"] = "none"
        made = case.get("outputs", [{}])[0]
        if makes_leaf and case["returns"] == "tensor" and made.get("gradient") == "none":
            made["leaf"] = True
    return fact


def cautious(cases: list[dict[str, Any]], observations: list[MeasuredCall]) -> dict[str, Any]:
    """One case that says of everything seen that it may happen, and of every argument that it may be kept."""
    kept = sorted(
        {save[0] for case in cases for save in case.get("saves", ())}
        | {place for each in observations for place in each.arguments if place not in each.integral}
    )
    wrote = sorted({name for case in cases for key in ("writes", "may_write") for name in case.get(key, ())})
    outputs = [_cautious_output(output) for output in cases[-1].get("outputs", ())]
    merged: dict[str, Any] = {
        "saves": [[what, [], "sometimes"] for what in kept],
        "outputs": outputs,
        "returns": cases[-1]["returns"],
        "holds_saved": "sometimes",
    }
    if wrote:
        merged["may_write"] = wrote
    return {key: value for key, value in merged.items() if value}


def _cautious_output(output: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in output.items() if key in ("alias", "dtype")}
    if "alias" in kept:
        kept.update(aliased="sometimes", same="sometimes")
    return {**kept, "flows": "sometimes"}


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
    entries: Iterable[catalog.PublicCallable],
    samples: TorchSamples,
    own: dict[str, list[CallTemplate]],
    signatures: Signatures,
) -> Iterator[tuple[dict[str, Any], list[MeasuredCall]]]:
    """Facts of functions, methods, properties and factories, each with the observations behind it."""
    for entry in entries:
        signature = signatures.find(entry.path, entry.target)
        if signature is None:
            continue
        target = Target(entry.target, signature)
        observations = measured_calls(target, own.get(entry.name, []), samples.calls(entry.name))
        if observations:
            yield told(entry.name, signature, observations), observations


def survey_modules(
    entries: Iterable[catalog.PublicCallable],
    database: dict[str, list[Construction]],
    own: dict[str, list[Construction]],
) -> Iterator[tuple[dict[str, Any], list[MeasuredCall]]]:
    """Facts of the module classes."""
    for entry in entries:
        kind: Any = entry.target
        constructions = [*own.get(entry.name, []), *spread(database.get(entry.name, []))]
        observations = observe_module(kind, constructions) if constructions else []
        if not observations:
            continue
        options = option_signature(kind)
        fact = told(entry.name, forward_signature(kind), observations, options)
        fact["options"] = [*options.positional, *options.keyword_only]
        fact["option_defaults"] = dict(options.defaults)
        yield fact, observations
