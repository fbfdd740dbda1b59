"""Verdicts on findings, and how long they count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gradsight.model.finding import Finding, Related
from gradsight.model.run_traces import Finished, Proof, RunTraces
from gradsight.model.source import Span
from gradsight.session.evidence import EvidenceBook, Verdict, in_two_lines, shown_by_probe
from gradsight.session.units import units_of
from gradsight.session.verdicts import judge

PATH = "/project/model.py"
TEXT = """import torch


def scale(x):
    y = x.exp()
    y *= 3
    return y


def other():
    return 1


z = scale(torch.ones(3, requires_grad=True))
z.sum().backward()
"""
FINDING = Finding(
    "GS101", "inplace-on-saved", "y is changed in place", "error", "certain", PATH, Span(6, 4, 6, 10),
    (Related("saved", "kept here", PATH, Span(5, 8, 5, 15)), Related("needed", "needed here", PATH, Span(15, 0, 15, 18))),
)  # fmt: skip

FINISHED = Finished(frozenset({(PATH, 15)}), {(PATH, 5): {"Exp": (1, 1)}}, 3, 3, is_exact=True)
MEMORY = (frozenset({(PATH, 6)}), frozenset({(PATH, 5), (PATH, 6)}))
PROOF = Proof((FINISHED,), {(PATH, 6): (2, 2)}, written_memory=(MEMORY,))


def fault(code: str = "GS101", row: int = 6) -> dict[str, Any]:
    place = {
        "filename": PATH,
        "location": {"row": row, "column": 5},
        "end_location": {"row": row, "column": 11},
    }
    step = {"role": "written", "message": "written here by `mul_`, version 0 → 1", **place}
    return {"code": code, "message": "overwrites", "severity": "error", "related": [step],
            "evidence": {"torch": "modified by an inplace operation"}, **place}  # fmt: skip


def document(outcome: str, *faults: dict[str, Any]) -> dict[str, Any]:
    return {"outcome": outcome, "faults": list(faults), "torch": "2.13.0+cpu", "error": None, "backwards": 1}


def check(
    outcome: str,
    faults: list[dict[str, Any]],
    visited: list[int],
    expected: list[tuple[str, Verdict]],
    proof: Proof = PROOF,
) -> None:
    """A run with these faults, through these lines, with this proof, gives these verdicts."""
    judged = judge([FINDING], document(outcome, *faults), {PATH: visited}, TEXT, PATH, RunTraces(proof=proof))
    assert [(each.finding.code, each.verdict) for each in judged] == expected


def test_a_fault_at_the_same_place_confirms() -> None:
    check("raised", [fault()], [], [("GS101", "confirmed")])


def test_a_run_that_saved_and_wrote_and_came_through_backward_refutes() -> None:
    check("clean", [], [5, 6, 15], [("GS101", "refuted")])


@pytest.mark.parametrize(
    ("proof", "why"),
    [
        (Proof(), "nothing was written on line 6"),
        (replace(PROOF, written_memory=((MEMORY[0], MEMORY[0]),)), "what was written on line 6 is not what line 5 is about"),
        (replace(PROOF, finished=()), "no backward on line 15 finished"),
        (replace(PROOF, finished=(replace(FINISHED, needed=frozenset({(PATH, 14)})),)), "no backward on line 15 finished"),
        (replace(PROOF, finished=(replace(FINISHED, made={(PATH, 4): {"Exp": (1, 1)}}),)), "no part in a backward"),
        (replace(PROOF, finished=(replace(FINISHED, last=1),)), "did not come between the save and a backward"),
        (replace(PROOF, writes={(PATH, 6): (0, 0)}), "did not come between the save and a backward"),
        (replace(PROOF, finished=(replace(FINISHED, is_exact=False),)), "not everything that backward needed"),
        (replace(PROOF, failed=((PATH, 15),)), "torch raised an error there, which the program caught"),
    ],
)  # fmt: skip
def test_a_run_that_did_not_go_right_cannot_judge_and_says_why(proof: Proof, why: str) -> None:
    kept = EvidenceBook()
    judged = judge([FINDING], document("clean"), {PATH: [5, 6, 15]}, TEXT, PATH, RunTraces(proof=proof))
    kept.record(PATH, judged)
    assert [each.verdict for each in judged] == ["undecided"]
    shown = overlaid(kept, TEXT)
    assert (shown.message, shown.severity) == (FINDING.message, "error")
    assert why in "\n".join(shown_by_probe(shown))


def test_another_operator_on_the_line_of_the_save_refutes_nothing() -> None:
    named = replace(FINDING, data={"op": "sigmoid"})
    [judged] = judge([named], document("clean"), {PATH: [5, 6, 15]}, TEXT, PATH, RunTraces(proof=PROOF))
    assert (judged.verdict, judged.why) == (
        "undecided",
        "the sigmoid on line 5 has no part in a backward that finished",
    )


def test_an_operator_in_place_on_the_line_of_the_save_is_another_one() -> None:
    named = replace(FINDING, data={"op": "exp"})
    in_place = replace(FINISHED, made={(PATH, 5): {"Exp_": (1, 1), "exp_": (1, 1)}})
    proof = replace(PROOF, finished=(in_place,))
    [judged] = judge([named], document("clean"), {PATH: [5, 6, 15]}, TEXT, PATH, RunTraces(proof=proof))
    assert (judged.verdict, judged.why) == (
        "undecided",
        "the exp on line 5 has no part in a backward that finished",
    )


def test_a_harmless_write_is_not_confirmed_where_a_backward_failed_and_was_caught() -> None:
    failed = RunTraces(proof=replace(PROOF, failed=((PATH, 15),)))
    [judged] = judge([HARMLESS], document("clean"), {PATH: [6]}, TEXT, PATH, failed)
    assert judged.verdict == "undecided"


def test_a_program_that_ended_early_says_so_in_the_hover() -> None:
    kept = EvidenceBook()
    kept.record(PATH, judge([FINDING], document("raised"), {PATH: [5, 6, 15]}, TEXT, PATH))
    assert "the program ended before its end" in "\n".join(shown_by_probe(overlaid(kept, TEXT)))


def test_a_run_that_missed_a_line_proves_nothing() -> None:
    check("clean", [], [5, 15], [("GS101", "not-reached")])


def test_a_run_that_ended_early_refutes_nothing() -> None:
    for outcome in ("raised", "timeout", "died", "could-not-run"):
        check(outcome, [], [5, 6, 15], [("GS101", "not-reached")])


def test_a_silent_fault_is_not_refuted_by_a_quiet_run() -> None:
    silent = replace(FINDING, code="GS302")
    [judged] = judge([silent], document("clean"), {PATH: [5, 6, 15]}, TEXT, PATH)
    assert judged.verdict == "undecided"


def test_a_fault_that_nobody_predicted_is_seen() -> None:
    check("raised", [fault("GS401", 15)], [], [("GS101", "not-reached"), ("GS401", "seen")])


def test_another_rule_at_the_same_line_confirms_nothing() -> None:
    check("faults", [fault("GS104")], [], [("GS101", "not-reached"), ("GS104", "seen")])


def test_the_same_cut_in_other_words_confirms() -> None:
    cut = replace(FINDING, code="GS206")
    [judged] = judge([cut], document("faults", fault("GS203")), {}, TEXT, PATH)
    assert judged.verdict == "confirmed"


def test_a_line_behind_the_error_was_not_reached() -> None:
    later = replace(
        FINDING,
        code="GS103",
        span=Span(7, 4, 7, 12),
        related=(Related("written", "the base is written here", PATH, Span(6, 4, 6, 10)),),
    )
    judged = judge([later], document("raised", fault("GS103")), {PATH: [5, 6]}, TEXT, PATH)
    assert [each.verdict for each in judged] == ["not-reached", "seen"]


def test_a_context_attribute_is_confirmed_by_its_own_name_only() -> None:
    kept = replace(
        FINDING,
        code="GS702",
        span=Span(2, 0, 2, 0),
        related=(Related("call", "applied here", PATH, Span(5, 8, 5, 15)),),
        data={"name": "x"},
    )
    seen = fault("GS702")
    seen["related"].append({**seen["related"][0], "role": "saved", "location": {"row": 5, "column": 9}})
    verdicts = []
    for name in ("ctx.x", "ctx.weight"):
        seen["evidence"]["saved_as"] = name
        verdicts.append(judge([kept], document("faults", seen), {}, TEXT, PATH)[0].verdict)
    assert verdicts == ["confirmed", "not-reached"]


HARMLESS = replace(FINDING, code="GS190", severity="hint", message="mul_ is safe here", related=())


def test_a_harmless_write_is_confirmed_by_an_exact_run() -> None:
    kept = EvidenceBook()
    kept.record(PATH, judge([HARMLESS], document("clean"), {PATH: [6]}, TEXT, PATH, RunTraces(proof=PROOF)))
    shown = overlaid(kept, TEXT, HARMLESS)
    assert (shown.message, shown.severity) == (HARMLESS.message, "hint")
    assert "the gradient was exact" in "\n".join(shown_by_probe(shown))


def test_a_hint_of_harmlessness_vanishes_when_a_run_shows_harm() -> None:
    kept = EvidenceBook()
    kept.record(PATH, judge([HARMLESS], document("faults", fault("GS104")), {PATH: [6]}, TEXT, PATH))
    assert [each.code for each in kept.overlay(PATH, TEXT, [HARMLESS])] == ["GS104"]


def test_a_run_that_was_stopped_says_how_far_it_went() -> None:
    kept = EvidenceBook()
    seen = {**document("clean"), "stopped": "3 steps"}
    kept.record(PATH, judge([FINDING], seen, {PATH: [5, 6, 15]}, TEXT, PATH, RunTraces(proof=PROOF)))
    assert "in its first 3 steps" in overlaid(kept, TEXT).message


def book(verdict: Verdict) -> EvidenceBook:
    """A book with one verdict on the finding."""
    kept = EvidenceBook()
    outcomes = {
        "confirmed": ("raised", [fault()], []),
        "refuted": ("clean", [], [5, 6, 15]),
        "not-reached": ("clean", [], []),
    }
    outcome, faults, visited = outcomes[verdict]
    kept.record(
        PATH,
        judge([FINDING], document(outcome, *faults), {PATH: visited}, TEXT, PATH, RunTraces(proof=PROOF)),
    )
    return kept


def overlaid(kept: EvidenceBook, text: str, finding: Finding = FINDING) -> Finding:
    [shown] = kept.overlay(PATH, text, [finding])
    return shown


def test_a_confirmed_finding_says_so_and_has_the_trail_of_the_run() -> None:
    shown = overlaid(book("confirmed"), TEXT)
    assert shown.message == "confirmed on torch 2.13.0: y is changed in place"
    assert "version 0 → 1" in shown.related[0].message
    assert "modified by an inplace" in "\n".join(shown_by_probe(shown))


def test_in_two_lines_the_message_comes_first_as_it_was_before_the_run() -> None:
    shown = overlaid(book("confirmed"), TEXT)
    assert in_two_lines(shown) == "y is changed in place\nconfirmed on torch 2.13.0"
    for untouched in (FINDING, overlaid(book("refuted"), TEXT)):
        assert in_two_lines(untouched) == untouched.message


def test_a_refuted_finding_is_a_hint() -> None:
    shown = overlaid(book("refuted"), TEXT)
    assert shown.severity == "hint"
    assert "the gradient was exact" in shown.message


def test_a_finding_that_was_not_reached_stays_as_it_is() -> None:
    shown = overlaid(book("not-reached"), TEXT)
    assert (shown.message, shown.severity, shown.related) == (FINDING.message, "error", FINDING.related)
    assert "did not get here" in "\n".join(shown_by_probe(shown))


def test_a_verdict_is_not_lost_when_a_later_run_does_not_come_there() -> None:
    kept = book("confirmed")
    kept.record(PATH, judge([FINDING], document("clean"), {}, TEXT, PATH))
    assert "confirmed" in overlaid(kept, TEXT).message


def test_a_later_verdict_takes_the_place_of_an_earlier_one() -> None:
    kept = book("confirmed")
    kept.record(
        PATH, judge([FINDING], document("clean"), {PATH: [5, 6, 15]}, TEXT, PATH, RunTraces(proof=PROOF))
    )
    assert overlaid(kept, TEXT).severity == "hint"


def test_a_change_in_the_function_ends_the_evidence() -> None:
    assert overlaid(book("confirmed"), TEXT.replace("y *= 3", "y *= 4")) == FINDING


def test_a_change_in_another_function_does_not() -> None:
    assert "confirmed" in overlaid(book("confirmed"), TEXT.replace("return 1", "return 2")).message


def test_a_function_that_moved_takes_its_evidence_along() -> None:
    moved = TEXT.replace("def scale", "def before():\n    pass\n\n\ndef scale")
    later = replace(FINDING, span=FINDING.span.moved(4))
    assert "confirmed" in overlaid(book("confirmed"), moved, later).message


def test_a_change_outside_functions_ends_evidence_that_rests_on_it() -> None:
    # The backward that needs the value stands outside every function.
    kept = EvidenceBook()
    kept.record(
        PATH, judge([FINDING], document("clean"), {PATH: [5, 6, 15]}, TEXT, PATH, RunTraces(proof=PROOF))
    )
    assert overlaid(kept, TEXT.replace("z.sum()", "z.mean()")) == FINDING


def test_comments_and_blank_lines_outside_functions_change_nothing() -> None:
    kept = EvidenceBook()
    kept.record(
        PATH, judge([FINDING], document("clean"), {PATH: [5, 6, 15]}, TEXT, PATH, RunTraces(proof=PROOF))
    )
    assert overlaid(kept, TEXT.replace("z.sum()", "# a comment\n\nz.sum()")).severity == "hint"


def test_a_text_that_does_not_parse_keeps_evidence_whose_function_is_whole() -> None:
    assert "confirmed" in overlaid(book("confirmed"), TEXT + "\n(").message


def test_dead_evidence_does_not_come_back() -> None:
    kept = book("confirmed")
    overlaid(kept, TEXT.replace("y *= 3", "y *= 4"))
    assert overlaid(kept, TEXT) == FINDING


def test_the_outermost_function_is_the_unit() -> None:
    text = "def outer():\n    def inner():\n        return 1\n    return inner\n"
    [unit] = units_of(text, [3])
    assert unit.lines == (1, 2, 3, 4)
