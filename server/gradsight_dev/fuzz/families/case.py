"""One program of a family: written from its seed, judged by torch, held against what is said about it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from gradsight_dev.fuzz.families import KINDS
from gradsight_dev.fuzz.families.answers import Answer, by_check
from gradsight_dev.fuzz.families.judge import effect_of, run
from gradsight_dev.fuzz.families.kind import Kind
from gradsight_dev.fuzz.families.script import Script, Version

PROMISED = {"harms": ("raises", "differs"), "same": ("same",)}


@dataclass(frozen=True, slots=True)
class Case:
    """`result` is found, other story, missed, quiet, alarm, or discarded where torch does not do what the kind promises."""

    seed: int
    kind: Kind
    result: str
    detail: str = ""
    alarms: tuple[str, ...] = ()
    """Warnings and errors on versions that torch runs as they should be."""


def written(seed: int, kinds: Sequence[Kind] = KINDS) -> tuple[Kind, Version, Version]:
    """The kind of this seed and its two versions: the same texts on every machine."""
    rng = random.Random(seed)
    kind = kinds[seed % len(kinds)]
    script = Script(rng, plain=rng.random() < 0.1)
    kind.write(script)
    return (kind, *script.versions())


def examine(seed: int, answer: Answer = by_check) -> Case:
    """Torch's word on the program of one seed, and what is said about it."""
    kind, hazard, twin = written(seed)
    ran = run(hazard)
    effect = effect_of(ran, run(twin))
    if effect not in PROMISED[kind.effect]:
        return Case(seed, kind, "discarded", f"{effect} {ran.error}")
    alarms = tuple(map(str, answer(twin)))
    told = answer(hazard)
    if kind.effect == "same":
        alarms += tuple(map(str, told))
        return Case(seed, kind, "alarm" if alarms else "quiet", "; ".join(alarms), alarms)
    on_line = [
        one for one in told if hazard.causes.get(one.path, frozenset()) & set(range(one.first, one.last + 1))
    ]
    if any(one.code.startswith(kind.codes) for one in on_line):
        return Case(seed, kind, "found", "", alarms)
    return Case(seed, kind, "other story" if on_line else "missed", "; ".join(map(str, told)), alarms)
