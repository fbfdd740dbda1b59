"""One program of a family: written from its seed, judged by torch, held against the engine."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gradsight.analysis import analyze
from gradsight.model import Finding, Settings, Source
from gradsight_dev.fuzz.families import KINDS
from gradsight_dev.fuzz.families.judge import effect_of, run
from gradsight_dev.fuzz.families.kind import Kind
from gradsight_dev.fuzz.families.script import Script, Version

PROMISED = {"harms": ("raises", "differs"), "same": ("same",)}
Said = Mapping[str, Sequence[Finding]]


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


def examine(seed: int, kinds: Sequence[Kind] = KINDS) -> Case:
    """Torch's word and the engine's on the program of one seed."""
    kind, hazard, twin = written(seed, kinds)
    ran = run(hazard)
    effect = effect_of(ran, run(twin))
    if effect not in PROMISED[kind.effect]:
        return Case(seed, kind, "discarded", f"{effect} {ran.error}")
    alarms = tuple(_told(said_of(twin)))
    told = said_of(hazard)
    if kind.effect == "same":
        alarms += tuple(_told(told))
        return Case(seed, kind, "alarm" if alarms else "quiet", "; ".join(alarms), alarms)
    on_line = [
        finding
        for findings in told.values()
        for finding in findings
        if hazard.causes.get(finding.path, frozenset())
        & set(range(finding.span.line, finding.span.end_line + 1))
    ]
    if any(finding.code.startswith(kind.codes) for finding in on_line):
        return Case(seed, kind, "found", "", alarms)
    return Case(seed, kind, "other story" if on_line else "missed", "; ".join(_told(told)), alarms)


def said_of(version: Version) -> Said:
    """The warnings and errors on each file."""

    def finder(module: str, level: int, importing: str) -> Source | None:
        path = f"{module}.py"
        return Source(path, version.texts[path]) if path in version.texts else None

    return {
        path: [
            finding
            for finding in analyze(Source(path, text), Settings(), finder).findings
            if finding.severity in ("error", "warning")
        ]
        for path, text in version.texts.items()
    }


def _told(said: Said) -> list[str]:
    return [
        f"{finding.severity} {finding.code} {finding.path}:{finding.span.line} {finding.message}"
        for findings in said.values()
        for finding in findings
    ]
