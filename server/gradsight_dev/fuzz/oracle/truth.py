"""What torch does with a program: the verdict, and for each failure its family and the lines that cause it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["raises", "exact", "silent", "masked", "cut", "foreign"]
"""`exact`: runs on every path and every gradient is right.  `silent`: runs, and a gradient differs from what the saved
values would have given.  `masked`: a saved value was changed unseen, and by luck no gradient differs.  `cut`: exact, but a
leaf that the loss depends on got no gradient.  `foreign`: fails for reasons that have nothing to do with gradients."""


@dataclass(frozen=True, slots=True)
class Family:
    """A group of torch errors with one story, and the rule codes (or prefixes) that tell it."""

    name: str
    pattern: re.Pattern[str]
    codes: tuple[str, ...]
    promised: bool = True
    """Whether the rules promise to find it; the others are counted apart."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One way in which the program fails."""

    family: str
    error: str
    message: str
    line: int
    causes: frozenset[int]
    """Lines a finding may stand on: what a user has to change, or where torch refuses."""
    carried: frozenset[int] = frozenset()
    """Where a graph is carried into another pass: right places for findings about carried graphs only."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What happens on all paths through the program."""

    verdict: Verdict
    failures: tuple[Failure, ...] = ()
    paths: int = 1
    note: str = ""
    unseen: frozenset[int] = frozenset()
    """Lines that changed a saved value past the version check, on any path: right places to say so."""


CARRIED_CODES = ("GS403", "GS404", "GS408")

FAMILIES = (
    Family("version", re.compile("modified by an inplace operation"), ("GS101", "GS106", *CARRIED_CODES)),
    Family("leaf", re.compile("leaf Variable that requires grad is being used in an in-place"), ("GS102",)),
    Family(
        "views",
        re.compile("is a view and (is being|its base or another view)|A view was created in"),
        ("GS103", "GS102"),
    ),
    Family(
        "overlap",
        re.compile("refer to a single memory location|refers to a single memory location"),
        ("GS103",),
    ),
    Family("out", re.compile(r"functions with out=... arguments don't support automatic"), ("GS1",)),
    Family("vector", re.compile("grad can be implicitly created only for scalar outputs"), ("GS401",)),
    Family("freed", re.compile("backward through the graph a second time"), ("GS402", *CARRIED_CODES)),
    Family("no_graph", re.compile("does not require grad and does not have a grad_fn"), ("GS2", "GS4")),
    Family(
        "unused",
        re.compile("appears to not have been used in the graph|differentiated Tensors? .*does not require"),
        ("GS406", "GS2"),
    ),
    Family("not_a_leaf", re.compile("can't optimize a non-leaf Tensor"), ("GS303",)),
    Family("none_grad", re.compile("NoneType"), ("GS304", "GS301")),
    Family(
        "inference",
        re.compile("[Ii]nference tensor|InferenceMode|in inference mode"),
        ("GS102", "GS103", "GS2"),
    ),
    Family("deepcopy", re.compile("Only Tensors created explicitly by the user"), ("GS306",)),
    Family(
        "flags",
        re.compile(
            "only change requires_grad flags|Can't detach views in-place|has been detached in-place|numpy\\(\\) on Tensor that requires"
        ),
        ("GS",),
        False,
    ),
)
SILENT = Family("silent", re.compile("(?!)"), ("GS104", "GS106"))
"""A gradient computed from values that were changed unseen: no error to recognise it by."""

BY_NAME = {family.name: family for family in (*FAMILIES, SILENT)}


def family_of(message: str) -> Family | None:
    """The family of a torch error, or None when it has nothing to do with gradients."""
    return next((family for family in FAMILIES if family.pattern.search(message)), None)
