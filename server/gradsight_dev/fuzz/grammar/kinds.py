"""The kinds of programs: which statements each likes, and how one is put together from its seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from gradsight_dev.fuzz.grammar import (
    compute,
    cuts,
    ending,
    flow,
    functions,
    holders,
    idioms,
    long_loops,
    modes,
    modules,
    objects,
    recipes,
    selection,
    steps,
    training,
    values,
    wrappers,
    writes,
)
from gradsight_dev.fuzz.grammar.draft import Draft
from gradsight_dev.fuzz.program import Program

Production = Callable[[Draft], bool]

EVERYDAY: Mapping[Production, float] = {
    compute.compute: 8.0,
    compute.nested: 2.0,
    writes.write: 4.0,
    compute.view: 1.5,
    compute.alias: 0.5,
}
IMPORTS = (
    ("collections.", "import collections"),
    ("contextlib.", "import contextlib"),
    ("copy.deep", "import copy"),
    ("dataclasses.", "import dataclasses"),
    ("functools.", "import functools"),
    ("itertools.", "import itertools"),
    ("operator.", "import operator"),
    ("random.random", "import random"),
    ("random.seed", "import random"),
    ("sys.argv", "import sys"),
    ("types.Simple", "import types"),
    ("np.", "import numpy as np"),
)


@dataclass(frozen=True)
class Kind:
    """A taste in programs."""

    name: str
    likes: Mapping[Production, float]
    weight: float = 1.0
    skeleton: Callable[[Draft], None] | None = None
    statements: tuple[int, int] = (3, 9)
    daring: tuple[float, ...] = (0.0, 0.2, 0.5, 0.8, 0.9)
    opening: Callable[[Draft], None] = field(default=lambda draft: _open_with_leaves(draft))


def generate(seed: int) -> Program:
    """The program of this seed: the same text on every machine."""
    rng = random.Random(seed)
    chosen = _choose(rng)
    draft = Draft(rng, rng.choice(chosen.daring), rng.choice((2, 3)), rng.choice((3, 4)))
    draft.menu = list(chosen.likes.items())
    if chosen.skeleton is not None:
        chosen.skeleton(draft)
    else:
        chosen.opening(draft)
        draft.write_some(*chosen.statements)
        ending.finish(draft)
    return Program(seed, chosen.name, _text(draft, seed))


def seeds(first: int, count: int, kinds: Collection[str] = ()) -> Iterator[int]:
    """`count` seeds from `first` on whose programs are of the given kinds (of any kind when none is given)."""
    seed = first
    while count > 0:
        if not kinds or _choose(random.Random(seed)).name in kinds:
            yield seed
            count -= 1
        seed += 1


def _choose(rng: random.Random) -> Kind:
    return rng.choices(KINDS, [one.weight for one in KINDS])[0]


def _open_with_leaves(draft: Draft) -> None:
    for _ in range(draft.weighted(((1, 4.0), (2, 4.0), (3, 1.0)))):
        values.make_leaf(draft)
    if draft.chance(0.5):
        values.make_data(draft)
    first = draft.find()
    assert first is not None
    text, result = compute.expression(draft, first, keep_shape=True)
    values.bind(draft, text, result)


def _open_with_one_leaf(draft: Draft) -> None:
    """One way to the loss only, so that a cut matters."""
    leaf = values.make_leaf(draft)
    text, result = compute.expression(draft, leaf, keep_shape=True)
    values.bind(draft, text, result)
    draft.forget(leaf.text) if draft.chance(0.6) else None


def _open_for_modules(draft: Draft) -> None:
    if draft.chance(0.4):
        values.make_leaf(draft, (draft.rows, draft.width))
    values.make_data(draft, (draft.rows, draft.width), "inputs")
    draft.weighted(((modules.use_module, 5.0), (modules.use_sequential, 2.0), (modules.use_layer, 1.0)))(
        draft
    )


def _text(draft: Draft, seed: int) -> str:
    body = "\n".join([*draft.head, "", "", *draft.body] if draft.head else draft.body)
    standard = [line for mark, line in IMPORTS if mark in body and not line.startswith("import numpy")]
    vendors = [line for mark, line in IMPORTS if mark in body and line.startswith("import numpy")]
    vendors.append("import torch")
    if "nn." in body.replace("torch.nn.", ""):
        vendors.append("import torch.nn as nn")
    if "F." in body:
        vendors.append("import torch.nn.functional as F")
    if "checkpoint.checkpoint" in body:
        vendors.append("import torch.utils.checkpoint")
    opening = "\n".join([*standard, "", *vendors] if standard else vendors)
    return f"{opening}\n\ntorch.manual_seed({seed % 1000})\n{body}\n"


KINDS = (
    Kind("straight", {**EVERYDAY, idioms.single_element: 0.7, idioms.chained: 0.4}, 1.2),
    Kind(
        "views",
        {**EVERYDAY, compute.view: 7.0, compute.unpacked_views: 3.0, writes.write: 5.0, idioms.starred: 0.7},
        1.6,
    ),
    Kind("writes", {**EVERYDAY, writes.write: 9.0, writes.guarded_write: 2.0, compute.alias: 1.0}, 1.5),
    Kind("hidden", {**EVERYDAY, writes.write: 1.0, writes.hidden_write: 5.0}, 1.5),
    Kind(
        "loops",
        {
            **EVERYDAY,
            flow.loop: 5.0,
            flow.carry: 3.0,
            compute.compute: 5.0,
            idioms.leaving_loop: 1.0,
            idioms.forever: 0.5,
            idioms.zipped: 1.0,
        },
        1.5,
        statements=(2, 5),
    ),
    Kind(
        "loop_backward",
        {**EVERYDAY, flow.carry: 2.0, ending.backward: 3.0, ending.use_gradient: 2.0, flow.loop: 5.0},
        1.0,
        statements=(2, 4),
    ),
    Kind(
        "functions",
        {
            **EVERYDAY,
            functions.define: 4.0,
            functions.call: 3.0,
            functions.closure: 1.5,
            functions.anonymous: 1.0,
            functions.recursion: 1.0,
            functions.generator: 1.0,
            functions.variadic: 1.0,
        },
        1.8,
        statements=(3, 6),
    ),
    Kind(
        "modules",
        {**EVERYDAY, modules.use_layer: 1.0, functions.call: 3.0, compute.view: 1.0},
        1.8,
        statements=(0, 4),
        opening=_open_for_modules,
    ),
    Kind(
        "modes",
        {
            **EVERYDAY,
            modes.quiet_block: 3.0,
            modes.recording_block: 1.0,
            modes.quiet_value: 2.0,
            modes.inference_value: 3.0,
            modes.switch: 0.7,
            modes.mode_by_flag: 1.0,
            writes.guarded_write: 1.5,
        },
        1.3,
    ),
    Kind("leaves", {**EVERYDAY, writes.guarded_write: 3.0, cuts.freeze: 1.0, cuts.deep_copy: 0.7}, 1.0),
    Kind(
        "containers",
        {**EVERYDAY, holders.listed: 4.0, holders.tupled: 2.0, holders.mapped: 2.0, idioms.zipped: 1.0},
        1.2,
        statements=(3, 7),
    ),
    Kind(
        "attributes",
        {**EVERYDAY, holders.attributed: 3.0, objects.stateful_object: 3.0, objects.callable_object: 2.0},
        1.2,
        statements=(2, 6),
    ),
    Kind("custom", {**EVERYDAY, objects.custom_function: 4.0}, 0.6, statements=(2, 6)),
    Kind(
        "branches",
        {
            **EVERYDAY,
            flow.branch: 5.0,
            flow.correlated_branches: 2.0,
            flow.attempt: 0.5,
            idioms.conditional_value: 2.0,
            idioms.walrus: 1.0,
        },
        1.3,
        statements=(2, 6),
    ),
    Kind(
        "idioms",
        {
            **EVERYDAY,
            idioms.chained: 1.5,
            idioms.swap: 1.5,
            idioms.conditional_value: 1.0,
            idioms.walrus: 1.0,
            idioms.starred: 1.0,
            idioms.zipped: 1.0,
            idioms.removed: 1.0,
            idioms.logged: 1.0,
            idioms.single_element: 1.0,
        },
        1.0,
    ),
    Kind(
        "cuts",
        {
            **EVERYDAY,
            writes.write: 2.0,
            cuts.cut: 4.0,
            cuts.number: 1.5,
            cuts.index: 1.0,
            cuts.ignored: 1.0,
            modes.quiet_value: 1.0,
            cuts.freeze: 0.7,
            idioms.logged: 0.5,
        },
        1.5,
        opening=_open_with_one_leaf,
    ),
    Kind(
        "backwards",
        {
            **EVERYDAY,
            ending.backward: 4.0,
            ending.use_gradient: 3.0,
            ending.retained: 1.0,
            ending.hooked: 0.7,
            writes.guarded_write: 1.0,
        },
        1.3,
    ),
    Kind(
        "gradients",
        {**EVERYDAY, ending.functional_gradient: 3.0, ending.use_gradient: 1.0},
        0.7,
        statements=(2, 5),
    ),
    Kind("training", {**EVERYDAY}, 2.0, skeleton=training.train_model),
    Kind("by_hand", {**EVERYDAY}, 0.8, skeleton=training.train_by_hand),
    Kind("recurrent", {**EVERYDAY}, 1.3, skeleton=training.recurrent),
    Kind("two_networks", {**EVERYDAY}, 0.8, skeleton=training.two_networks),
    Kind("optimized", {**EVERYDAY}, 0.8, skeleton=training.optimized_leaves),
    Kind("train_functions", {**EVERYDAY}, 0.8, skeleton=steps.train_by_functions),
    Kind("stateful", {**EVERYDAY}, 0.8, skeleton=steps.stateful_module),
    Kind("penalty", {**EVERYDAY}, 0.7, skeleton=steps.gradient_penalty),
    Kind("parameters", {**EVERYDAY}, 0.8, skeleton=steps.manual_parameters),
    Kind(
        "wrapped",
        {
            **EVERYDAY,
            wrappers.own_context: 1.5,
            wrappers.decorated: 1.5,
            wrappers.partial: 2.0,
            wrappers.matched: 1.0,
            wrappers.excepted: 1.0,
            wrappers.shared_by_class: 1.0,
            wrappers.data_record: 1.0,
            wrappers.correlated_lengths: 1.0,
            wrappers.generator_pipeline: 1.0,
        },
        2.0,
    ),
    Kind("selecting", {**EVERYDAY, selection.choose: 7.0, selection.place: 6.0, writes.write: 1.5}, 2.0),
    Kind("recipes", {**EVERYDAY}, 2.0, skeleton=recipes.recipe),
    Kind("long_loops", {**EVERYDAY}, 2.0, skeleton=long_loops.long_loops),
    Kind(
        "mixed",
        {
            **EVERYDAY,
            flow.loop: 1.0,
            flow.branch: 1.0,
            functions.define: 1.0,
            functions.call: 1.0,
            functions.closure: 0.4,
            holders.listed: 0.7,
            holders.mapped: 0.4,
            holders.attributed: 0.4,
            modes.quiet_block: 0.7,
            modes.quiet_value: 0.4,
            cuts.cut: 0.7,
            cuts.number: 0.3,
            compute.unpacked_views: 0.7,
            modules.use_layer: 0.5,
            modules.use_module: 0.4,
            writes.hidden_write: 0.3,
            writes.guarded_write: 0.5,
            ending.retained: 0.2,
            ending.hooked: 0.2,
            idioms.chained: 0.2,
            idioms.swap: 0.3,
            idioms.conditional_value: 0.3,
            idioms.walrus: 0.2,
            idioms.zipped: 0.3,
            idioms.logged: 0.3,
            idioms.leaving_loop: 0.3,
            objects.stateful_object: 0.4,
            objects.callable_object: 0.3,
            objects.custom_function: 0.2,
        },
        3.0,
        statements=(5, 12),
    ),
)
BY_NAME = {kind.name: kind for kind in KINDS}
