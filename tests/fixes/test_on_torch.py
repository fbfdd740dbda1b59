"""Every safe fix of every fixture is applied and run on torch: it must end, with the gradients of the reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gradsight.analysis import analyze
from gradsight.fixing import fix_all, fixes_for
from gradsight.model import Source, apply_edits
from gradsight_dev.verify_fixtures import COLLECTIONS
from tests.fixes.torch_running import grads_of, is_right

pytestmark = pytest.mark.facts

LOUD = ("error", "warning")
PROGRAMS = [
    (collection.programs / label["file"], collection.references / label["file"])
    for collection in COLLECTIONS
    for label in json.loads(collection.labels.read_text(encoding="utf-8"))
]


class Proof:
    """One program, its findings, and the gradients it should end with; each changed text is run once."""

    def __init__(self, program: Path, reference: Path) -> None:
        self.program = program
        self.reference = reference
        self.source = Source(str(program), program.read_text(encoding="utf-8"))
        self.report = analyze(self.source)
        self.known: dict[str, str] = {}
        self.wanted: dict[str, Any] | None = None

    def refutes(self, text: str) -> str:
        if self.wanted is None:
            self.wanted = grads_of(self.reference.read_text(encoding="utf-8"), str(self.reference))
        if text not in self.known:
            self.known[text] = is_right(text, str(self.program), self.wanted)
        return self.known[text]


@pytest.mark.parametrize(("program", "reference"), PROGRAMS, ids=lambda path: path.stem)
def test_safe_fixes_end_with_the_gradients_of_the_reference(program: Path, reference: Path) -> None:
    proof = Proof(program, reference)
    complaints = []
    for finding in proof.report.findings:
        if finding.severity == "hint":
            continue
        for fix in fixes_for(proof.source, finding, report=proof.report):
            if fix.safety != "safe":
                continue
            text = apply_edits(proof.source.text, fix.edits)
            problem = proof.refutes(text)
            if problem:
                complaints.append(f"{finding.code} line {finding.span.line}: {fix.title}: {problem}")
    text, applied = fix_all(proof.source)
    if applied:
        left = [one.code for one in analyze(Source(str(program), text)).findings if one.severity in LOUD]
        if not left and (problem := proof.refutes(text)):
            complaints.append(f"all at once: {[fix.title for fix in applied]}: {problem}")
        again, more = fix_all(Source(str(program), text))
        if more or again != text:
            complaints.append(f"a second run changes more: {[fix.title for fix in more]}")
    assert complaints == []
