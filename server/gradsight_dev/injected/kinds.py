"""The kinds of bugs that are put in, and the beginnings of the codes that name each rightly."""

from __future__ import annotations

from collections.abc import Mapping

WORLDS = ("plain", "gan", "rl", "multi-file", "framework")

CODES: Mapping[str, tuple[str, ...]] = {
    "zero-grad-removed": ("GS501", "GS508"),
    "zero-grad-misplaced": ("GS50",),
    "step-before-backward": ("GS106", "GS50"),
    "step-between-losses": ("GS106",),
    "backward-removed": ("GS5",),
    "step-removed": ("GS5",),
    "inplace-on-saved": ("GS101", "GS102", "GS103", "GS108"),
    "silent-write": ("GS104", "GS105"),
    "detach-on-path": ("GS2", "GS5"),
    "number-on-path": ("GS2", "GS5"),
    "copied-by-tensor": ("GS2",),
    "hidden-cut": ("GS2",),
    "forward-without-grad": ("GS2", "GS5"),
    "no-gradient-operator": ("GS2",),
    "graph-kept": ("GS40", "GS2"),
    "graph-carried-over": ("GS40",),
    "backward-twice": ("GS40",),
    "penalty-without-graph": ("GS40",),
    "not-registered": ("GS60", "GS5"),
    "wrong-parameters": ("GS5", "GS303"),
    "parameters-replaced": ("GS5",),
    "softmax-twice": ("GS605",),
    "eval-left-on": ("GS505",),
    "scaler-misuse": ("GS5",),
    "clip-misplaced": ("GS5", "GS304"),
    "shared-target": ("GS",),
    "target-not-constant": ("GS290", "GS508"),
    "scheduler-first": ("GS506",),
    "non-scalar-backward": ("GS401",),
    "grad-of-non-leaf": ("GS30",),
    "foreign-gradients": ("GS508", "GS5", "GS402"),
    "alias": ("GS107", "GS302"),
}
