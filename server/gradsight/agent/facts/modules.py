"""Observes `nn.Module` classes: per constructor options and training mode, with the module's own tensors as arguments.

The module's parameters and buffers are places of their own, `self.weight`, `self.running_mean`.
"""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gradsight.agent.facts.measure import CallFailed, MeasuredCall, measure
from gradsight.agent.facts.observe import (
    TOGETHER,
    CallTemplate,
    Pattern,
    Run,
    fresh_arguments,
    named_results,
    seed_cpu,
)
from gradsight.agent.facts.signatures import Signature, signature_from_text, signature_of_python
from gradsight.agent.facts.torch_samples import seed_everything

# Modules whose parameters are told together, as `self.parameters`: their number depends on the options.
STACKED = (
    torch.nn.RNNBase,
    torch.nn.Transformer,
    torch.nn.TransformerEncoder,
    torch.nn.TransformerDecoder,
    torch.nn.TransformerEncoderLayer,
    torch.nn.TransformerDecoderLayer,
)
STACKED_OBSERVATIONS = 40
SAMPLES_PER_MODE = 8
# The constructors of recurrent modules take `*args`.
RECURRENT_OPTIONS = {
    "RNN": "self, input_size, hidden_size, num_layers=1, nonlinearity='tanh', bias=True, batch_first=False, dropout=0.0, "
    "bidirectional=False",
    "LSTM": "self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, "
    "proj_size=0",
    "GRU": "self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False",
}
OPTION_TEXTS = {"reduction": ("sum", "none")}
UNTELLING_OPTIONS = frozenset(["device", "dtype", "batch_first", "size_average", "reduce"])


@dataclass
class Construction:
    """How to make a module and how to call it."""

    options: tuple[tuple[Any, ...], dict[str, Any]]
    call: CallTemplate
    modes: tuple[bool, ...] = (True, False)


@dataclass
class ModuleTarget:
    """A module under observation; every run works on a copy of it."""

    module: torch.nn.Module
    signature: Signature
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parameters = [name for name, _ in self.module.named_parameters()]
        if isinstance(self.module, STACKED):
            self.names = {name: f"{TOGETHER}[{index}]" for index, name in enumerate(parameters)}

    def run(
        self,
        call: CallTemplate,
        pattern: Pattern,
        seed: int = 0,
        keep_contents: bool = False,
        as_leaf: bool = False,
    ) -> Run:
        """Execute a copy of the module on copies of the arguments."""
        module = copy.deepcopy(self.module)
        positional, keywords, arguments, leaves = fresh_arguments(self.signature, call, pattern, as_leaf)
        for name, parameter in module.named_parameters():
            place = self.names.get(name, "self." + name)
            requires_grad = place in pattern or (name in self.names and TOGETHER in pattern)
            parameter.requires_grad_(requires_grad)
            arguments[place] = parameter
            if requires_grad:
                leaves[place] = parameter
        buffers = {"self." + name: buffer for name, buffer in module.named_buffers()}
        arguments.update(buffers)
        versions = {place: tensor._version for place, tensor in arguments.items()}
        contents: dict[str, Tensor] = {}
        if keep_contents:
            contents = {place: tensor.detach().clone() for place, tensor in arguments.items()}
        seed_cpu(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = module(*positional, **keywords)
        results = dict(named_results(outcome))
        return Run(arguments, leaves, outcome, results, versions, contents, frozenset(buffers))


def observe_module(kind: type[torch.nn.Module], constructions: list[Construction]) -> list[MeasuredCall]:
    """Observations of a class over its constructions, in training and in evaluation mode."""
    found: list[MeasuredCall] = []
    constructor = _constructor(kind)
    forward = forward_signature(kind)
    seen_options: set[str] = set()
    for construction in itertools.chain(
        constructions, *[_variants(each, constructor) for each in constructions[:2]]
    ):
        arguments, options = construction.options
        for training in construction.modes:
            key = repr((arguments, options, training, len(construction.call.positional)))
            if key in seen_options and len(seen_options) > 24:
                continue
            if issubclass(kind, STACKED) and len(found) >= STACKED_OBSERVATIONS:
                continue
            seen_options.add(key)
            try:
                target = ModuleTarget(made_module(kind, construction, training), forward)
                told = constructed_options(kind, construction, training)
            except Exception:
                continue
            try:
                found.append(measure(target, construction.call, told))
            except CallFailed:
                continue
    return found


def spread(constructions: list[Construction]) -> list[Construction]:
    """The same constructions, in an order in which early ones differ most: databases vary one option at a time."""
    step = max(1, len(constructions) // 6)
    return [constructions[index] for start in range(step) for index in range(start, len(constructions), step)]


def constructed_options(
    kind: type[torch.nn.Module], construction: Construction, training: bool
) -> dict[str, Any]:
    """Constructor options by name, defaults filled in, with `training`; `forward` parameters of the same name win."""
    constructor, forward = _constructor(kind), forward_signature(kind)
    arguments, options = construction.options
    bound = constructor.bind((None, *arguments), options)
    told: dict[str, Any] = {name: literal(text) for name, text in constructor.defaults.items()}
    told.update(bound)
    told["training"] = training
    return {name: value for name, value in told.items() if name not in ("self", *forward.positional)}


def made_module(kind: type[torch.nn.Module], construction: Construction, training: bool) -> torch.nn.Module:
    """A fresh module in the wanted mode; a lazy one has seen its input."""
    arguments, options = construction.options
    seed_cpu(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = kind(*arguments, **options)
        if isinstance(module, torch.nn.modules.lazy.LazyModuleMixin):
            module(*copy.deepcopy(construction.call.positional), **construction.call.keywords)
    module.train(training)
    return module


def literal(text: str) -> Any:
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _variants(construction: Construction, constructor: Signature) -> Iterator[Construction]:
    arguments, options = construction.options
    given = set(constructor.positional[1 : len(arguments) + 1]) | set(options)

    def changed(**extra: Any) -> Construction:
        return Construction((arguments, {**options, **extra}), construction.call, construction.modes)

    for name, default in constructor.defaults.items():
        if name in UNTELLING_OPTIONS or name in given:
            continue
        if default in ("True", "False"):
            yield changed(**{name: default != "True"})
        if name in OPTION_TEXTS:
            for text in OPTION_TEXTS[name]:
                yield changed(**{name: text})
        if name == "p" and default != "None" and "inplace" in constructor.defaults:
            yield changed(p=0.0)
            yield changed(p=0.0, inplace=True)


def forward_signature(kind: type[torch.nn.Module]) -> Signature:
    """Parameters of `forward` without the module itself."""
    signature = signature_of_python(kind.forward) or Signature()
    signature.positional = [name for name in signature.positional if name != "self"]
    return signature


def option_signature(kind: type[torch.nn.Module]) -> Signature:
    """Parameters of the constructor without the module itself."""
    signature = _constructor(kind)
    signature.positional = [name for name in signature.positional if name != "self"]
    return signature


def _constructor(kind: type[torch.nn.Module]) -> Signature:
    if kind.__name__ in RECURRENT_OPTIONS:
        return signature_from_text(RECURRENT_OPTIONS[kind.__name__])
    return signature_of_python(kind.__init__) or Signature()


def database_constructions(module_db: list[Any], seed: int = 0) -> dict[str, list[Construction]]:
    """Constructions from torch's ModuleInfo, by table name."""
    found: dict[str, list[Construction]] = {}
    for info in module_db:
        name = "nn." + info.module_cls.__name__
        for training in (True, False):
            seed_everything(seed)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    inputs = info.module_inputs_func(
                        info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
                    )
            except Exception:
                continue
            for each in list(inputs)[:SAMPLES_PER_MODE]:
                if each.forward_input is None:
                    continue
                made = (tuple(each.constructor_input.args), dict(each.constructor_input.kwargs))
                call = CallTemplate(tuple(each.forward_input.args), dict(each.forward_input.kwargs))
                found.setdefault(name, []).append(Construction(made, call, (training,)))
    return found
