"""Proves the labels of the fixture programs by running every program and its reference on torch.

A *program* is real-looking code with one verdict; its *reference* computes the same gradients by code that is
known to be right (the corrected or out-of-place version).  Both end by setting `GRADS`, a dict of tensors.
- raises: the program fails with the labelled text at the labelled line; the reference runs.
- silent-wrong: the program runs, and its GRADS are not those of the reference.
- safe: the program runs, and its GRADS are those of the reference.

The programs of `reports` are written after what users reported: `source` is the address of the report,
or `near` that of one which is only alike.

All programs run in this one process, each in a namespace of its own, after grad mode, seeds and default dtype
are put back: a program cannot lean on what another one left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import sys
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
VERDICTS = ("raises", "silent-wrong", "safe")
FIELDS = (
    "file",
    "verdict",
    "error",
    "raises_at",
    "hazard_lines",
    "related_lines",
    "kind",
    "rule",
    "fix",
    "crosses",
)


@dataclass(frozen=True)
class Collection:
    """A folder of programs, the folder of their references and the file that labels them."""

    name: str
    programs: Path
    references: Path
    labels: Path
    extra_fields: tuple[str, ...] = ()
    # Fields of which each label has exactly one.
    one_of: tuple[str, ...] = ()


COLLECTIONS = (
    Collection("programs", FIXTURES / "programs", FIXTURES / "references", FIXTURES / "labels.json"),
    Collection(
        "truths",
        FIXTURES / "truths",
        FIXTURES / "truths" / "references",
        FIXTURES / "truths" / "labels.json",
        ("says",),
    ),
    Collection(
        "training",
        FIXTURES / "training",
        FIXTURES / "training" / "references",
        FIXTURES / "training" / "labels.json",
    ),
    Collection(
        "gradients",
        FIXTURES / "gradients",
        FIXTURES / "gradients" / "references",
        FIXTURES / "gradients" / "labels.json",
    ),
    Collection(
        "memory",
        FIXTURES / "memory",
        FIXTURES / "memory" / "references",
        FIXTURES / "memory" / "labels.json",
    ),
    Collection(
        "trained",
        FIXTURES / "trained",
        FIXTURES / "trained" / "references",
        FIXTURES / "trained" / "labels.json",
    ),
    Collection(
        "reports",
        FIXTURES / "reports",
        FIXTURES / "reports" / "references",
        FIXTURES / "reports" / "labels.json",
        one_of=("source", "near"),
    ),
)


@dataclass(frozen=True)
class Outcome:
    """What torch did with one file: its GRADS, or the error and the last line of the file on the traceback."""

    grads: dict[str, torch.Tensor | None] | None
    error: str | None
    raised_at: int | None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m gradsight_dev.verify_fixtures", description=__doc__)
    parser.add_argument("names", nargs="*", help="file names to verify; all of them when none is given")
    wanted = set(parser.parse_args(arguments).names)
    torch.set_num_threads(1)
    verified, complaints = 0, []
    for collection in COLLECTIONS:
        for label in read_labels(collection):
            if wanted and label.get("file") not in wanted:
                continue
            verified += 1
            complaints += [
                f"{collection.name}/{label.get('file')}: {text}" for text in prove(collection, label)
            ]
        if not wanted:
            complaints += [f"{collection.name}: {text}" for text in stray_files(collection)]
    for complaint in complaints:
        print(complaint)
    print(f"{verified} programs run on torch {torch.__version__}, {len(complaints)} complaints")
    return 1 if complaints else 0


def read_labels(collection: Collection) -> list[dict[str, Any]]:
    labels: list[dict[str, Any]] = json.loads(collection.labels.read_text(encoding="utf-8"))
    return labels


def prove(collection: Collection, label: dict[str, Any]) -> Iterator[str]:
    """Yield one sentence for each claim of the label that torch, or the text of the program, refutes."""
    fields = FIELDS + collection.extra_fields
    chosen = [field for field in collection.one_of if field in label]
    if collection.one_of and len(chosen) != 1:
        yield f"the label has {chosen or 'none'} of the fields {collection.one_of}, not one"
        return
    if set(label) != {*fields, *chosen}:
        yield f"the label has the fields {sorted(label)}, not {sorted(fields)}"
        return
    program, reference = collection.programs / label["file"], collection.references / label["file"]
    if not program.exists() or not reference.exists():
        yield "the program or its reference is missing"
        return
    yield from wrong_shape(label, program.read_text(encoding="utf-8"), reference.read_text(encoding="utf-8"))
    yield from refuted(label, run(program), run(reference))


def wrong_shape(label: dict[str, Any], program: str, reference: str) -> Iterator[str]:
    """What can be seen without running: fields that contradict each other or the text."""
    verdict = label["verdict"]
    if verdict not in VERDICTS:
        yield f"the verdict is {verdict!r}"
    if (verdict == "raises") != bool(label["error"]) or (verdict == "raises") != (
        label["raises_at"] is not None
    ):
        yield "error and raises_at belong to the verdict raises, and only to it"
    if (verdict == "safe") != (not label["hazard_lines"]) or (verdict == "safe") != (not label["rule"]):
        yield "hazard lines and rule belong to a hazard, and only to it"
    if program == reference:
        yield "the reference is the program itself"
    lines = program.split("\n")
    for line in [*label["hazard_lines"], *(n for group in label["related_lines"].values() for n in group)]:
        if (
            not 1 <= line <= len(lines)
            or not lines[line - 1].strip()
            or lines[line - 1].lstrip().startswith("#")
        ):
            yield f"line {line} holds no statement"


def refuted(label: dict[str, Any], program: Outcome, reference: Outcome) -> Iterator[str]:
    """What torch says against the verdict."""
    if reference.error is not None:
        yield f"the reference raises at line {reference.raised_at}: {reference.error}"
        return
    if not reference.grads:
        yield "the reference sets no GRADS"
        return
    if not any(grad is not None and bool((grad != 0).any()) for grad in reference.grads.values()):
        yield "the reference has no gradient that could differ"
    if label["verdict"] == "raises":
        if program.error is None:
            yield "the program does not raise"
        elif label["error"] not in program.error:
            yield f"the program raises something else: {program.error}"
        elif program.raised_at != label["raises_at"]:
            yield f"the program raises at line {program.raised_at}, not at {label['raises_at']}"
    elif program.error is not None:
        yield f"the program raises at line {program.raised_at}: {program.error}"
    elif label["verdict"] == "safe" and not agree(program.grads, reference.grads):
        yield "the gradients are not those of the reference"
    elif label["verdict"] == "silent-wrong" and agree(program.grads, reference.grads):
        yield "the gradients are those of the reference"


def run(path: Path) -> Outcome:
    """Execute one file as a script, silenced, from the same starting state as every other file."""
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(0)
    random.seed(0)
    namespace: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    error, raised_at = None, None
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
            own = [f for f in traceback.extract_tb(problem.__traceback__) if f.filename == str(path)]
            raised_at = own[-1].lineno if own else None
        finally:
            torch.set_grad_enabled(True)
            torch.set_default_dtype(torch.float32)
    return Outcome(namespace.get("GRADS"), error, raised_at)


def agree(ours: dict[str, torch.Tensor | None] | None, theirs: dict[str, torch.Tensor | None] | None) -> bool:
    if ours is None or theirs is None or ours.keys() != theirs.keys():
        return False
    return all(close(ours[name], theirs[name]) for name in ours)


def close(left: torch.Tensor | None, right: torch.Tensor | None) -> bool:
    """Equal up to the rounding that another order of the same operations brings."""
    if left is None or right is None:
        return left is right
    if left.shape != right.shape:
        return False
    return bool(torch.allclose(left.detach().double(), right.detach().double(), rtol=1e-4, atol=1e-6))


def stray_files(collection: Collection) -> Iterator[str]:
    """Programs and references that no label speaks of, and labels given twice."""
    named = [label["file"] for label in read_labels(collection)]
    for name in sorted({name for name in named if named.count(name) > 1}):
        yield f"{name} is labelled twice"
    for folder in (collection.programs, collection.references):
        for path in sorted(folder.glob("*.py")):
            if path.name not in named:
                yield f"{folder.name}/{path.name} has no label"


if __name__ == "__main__":
    sys.exit(main())
