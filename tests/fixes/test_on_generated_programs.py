"""Safe repairs of writes, on programs that nobody wrote: the gradients must be those of the values that were saved.

The original program runs with every saved tensor cloned, so that it ends with the gradients it was meant to have; the
repaired one runs plainly.  A program whose other writes torch cannot see is left out: it has no gradient to compare.
"""

from __future__ import annotations

import re

import pytest
import torch

from gradsight.analysis import analyze
from gradsight.fixing import fixes_for
from gradsight.model import Source, apply_edits
from gradsight_dev.fuzz.grammar import generate
from gradsight_dev.fuzz.oracle.execution import Ended, Raised, gradient_of, run, tensors_of
from gradsight_dev.fuzz.oracle.reference import ClonedSaves, same_values
from gradsight_dev.fuzz.oracle.steering import Steering, TooManyPaths, every_path

UNSEEN = re.compile(r"\.data\b|numpy|fused")
BATCH, BATCHES, MOST_PATHS = 40, 5, 3


def differing_gradient(one: Ended, other: Ended) -> str:
    """The first leaf whose gradient is another one in the other run."""
    theirs = dict(tensors_of(other.names))
    for label, tensor in tensors_of(one.names):
        if label in theirs and tensor.is_leaf and tensor.requires_grad:
            left, right = gradient_of(tensor), gradient_of(theirs[label])
            if (left is None) != (right is None):
                return label
            if (
                isinstance(left, torch.Tensor)
                and isinstance(right, torch.Tensor)
                and not same_values(left, right)
            ):
                return label
    return ""


def complaints(seed: int) -> list[str]:
    """What torch says against the safe fixes of one program."""
    program = generate(seed)
    if UNSEEN.search(program.text):
        return []
    source = Source(program.path, program.text)
    report = analyze(source)
    found = []
    for finding in report.findings:
        if not finding.code.startswith("GS1") or finding.severity not in ("error", "warning"):
            continue
        for fix in fixes_for(source, finding, report=report):
            if fix.safety == "safe":
                changed = apply_edits(source.text, fix.edits)
                problem = refuted(source, changed)
                if problem:
                    found.append(f"seed {seed}, line {finding.span.line}: {fix.title}: {problem}")
    return found


def refuted(source: Source, changed: str) -> str:
    before, after = compile(source.text, source.path, "exec"), compile(changed, source.path, "exec")
    try:
        for number, steering in enumerate(every_path(source.text, source.path)):
            if number == MOST_PATHS:
                break
            meant = run(before, steering, ClonedSaves())
            script = tuple(steering.answers)
            if isinstance(meant, Raised):
                continue
            plain = run(after, Steering(changed, source.path, script))
            if isinstance(plain, Raised):
                plain = run(after, Steering(changed, source.path, script), ClonedSaves())
            if isinstance(plain, Raised):
                return f"raises {plain.message.splitlines()[0]}"
            label = differing_gradient(plain, meant)
            if label:
                return f"another gradient in {label}"
    except (TooManyPaths, RuntimeError):
        return ""
    return ""


@pytest.mark.parametrize("batch", range(BATCHES))
def test_safe_fixes_keep_the_gradients_of_generated_programs(batch: int) -> None:
    torch.set_num_threads(1)
    first = 70_000 + batch * BATCH
    assert [text for seed in range(first, first + BATCH) for text in complaints(seed)] == []
