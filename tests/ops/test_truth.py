"""Facts drawn at random are tried out on fresh inputs against torch."""

from __future__ import annotations

import os
import random
import secrets
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from gradsight.agent.facts import catalog
from gradsight.agent.facts.modules import (
    ModuleTarget,
    constructed_options,
    database_constructions,
    forward_signature,
    made_module,
)
from gradsight.agent.facts.observe import CallTemplate, Target
from gradsight.agent.facts.own_modules import own_constructions
from gradsight.agent.facts.own_samples import own_calls
from gradsight.agent.facts.signatures import Signatures
from gradsight.agent.facts.survey import is_known_call
from gradsight.agent.facts.torch_samples import TorchSamples, import_databases
from gradsight.agent.facts.variants import variants_of
from gradsight.ops.table import shipped
from tests.ops.judge import can_be_tried, disagreements

DRAWN = 340
CALLS_EACH = 6
Trial = tuple[Any, CallTemplate, dict[str, Any] | None]


@pytest.fixture(scope="module")
def seed() -> int:
    """Another one in every run; `GRADSIGHT_SEED` repeats a run."""
    return int(os.environ.get("GRADSIGHT_SEED") or secrets.randbelow(100_000))


@pytest.fixture(scope="module")
def draw(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.mark.facts
def test_facts_drawn_at_random_hold_on_fresh_inputs(seed: int, draw: random.Random) -> None:
    torch.set_num_threads(1)
    print(f"seed {seed}")
    table = shipped()
    trials = Trials(seed, draw)
    names = [name for name in trials.names() if table.find(name) is not None]
    draw.shuffle(names)
    tried, wrong = 0, []
    for name in names:
        if tried >= DRAWN:
            break
        fact = table.find(name)
        assert fact is not None
        fitting = 0
        for target, call, options in trials.of(name):
            if fitting >= CALLS_EACH:
                break
            if can_be_tried(target, call):
                fitting += 1
                wrong += disagreements(fact, target, call, options)
        tried += fitting > 0
    assert tried >= 300, f"seed {seed}: only {tried} operators could be tried"
    assert not wrong, f"seed {seed}:\n" + "\n".join(wrong[:40])


class Trials:
    """Calls of any callable, on inputs drawn from a seed."""

    def __init__(self, seed: int, draw: random.Random) -> None:
        op_db, module_db, trouble = import_databases()
        assert not trouble, trouble
        self._draw = draw
        self._samples = TorchSamples(op_db, seed)
        self._own = own_calls(seed)
        self._entries = {entry.name: entry for entry in catalog.functions()}
        self._modules = {entry.name: entry for entry in catalog.modules()}
        self._signatures = Signatures()
        constructions = own_constructions(seed)
        for name, found in database_constructions(module_db, seed).items():
            constructions.setdefault(name, []).extend(found)
        self._constructions = constructions

    def names(self) -> list[str]:
        """Everything that can be called or constructed."""
        return sorted([*self._entries, *[name for name in self._modules if name in self._constructions]])

    def of(self, name: str) -> Iterator[Trial]:
        """Trials of one callable, in random order."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield from self._of_module(name) if name in self._modules else self._of_function(name)

    def _of_function(self, name: str) -> Iterator[Trial]:
        entry = self._entries[name]
        signature = self._signatures.find(entry.path, entry.target)
        if signature is None:
            return
        target = Target(entry.target, signature)
        calls = [*self._own.get(name, []), *self._samples.calls(name)]
        self._draw.shuffle(calls)
        for call in calls:
            if is_known_call(signature, call):
                yield target, call, None
                variants = list(variants_of(call, signature))
                if variants:
                    yield target, self._draw.choice(variants), None

    def _of_module(self, name: str) -> Iterator[Trial]:
        kind: Any = self._modules[name].target
        constructions = list(self._constructions[name])
        self._draw.shuffle(constructions)
        for construction in constructions:
            training = self._draw.choice(construction.modes)
            try:
                module = made_module(kind, construction, training)
                options = constructed_options(kind, construction, training)
            except Exception:
                continue
            yield ModuleTarget(module, forward_signature(kind)), construction.call, options
