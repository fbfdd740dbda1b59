"""Compares the measured facts with the sources inside the wheel: derivative formulas and schema annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gradsight.agent.facts.formulas import Formula, declared_memory, load_formulas
from gradsight_dev.facts.reasons import reason_of


@dataclass
class Comparison:
    """How often two sources were compared, and where they differ: (operator, what differs, why)."""

    compared: int = 0
    operators: set[str] = field(default_factory=set)
    differences: list[tuple[str, str, str]] = field(default_factory=list)

    def note(self, name: str, agrees: bool, text: str, source: str) -> None:
        """Count one comparison."""
        self.compared += 1
        self.operators.add(name)
        if not agrees and (name, text) not in {(known, said) for known, said, _ in self.differences}:
            self.differences.append((name, text, reason_of(source, name, text)))


@dataclass
class CrossChecks:
    """All comparisons of one measurement."""

    methods: Comparison
    formulas: Comparison
    writes: Comparison
    views: Comparison

    def unexplained(self) -> list[tuple[str, str, str]]:
        """Differences without a reason."""
        everything = (self.methods, self.formulas, self.writes, self.views)
        return [each for comparison in everything for each in comparison.differences if not each[2]]


def cross_checked(measured: Mapping[str, Any]) -> CrossChecks:
    """Run every comparison on a measurement."""
    formulas, _ = load_formulas()
    by_node: dict[str, list[Formula]] = {}
    for formula in formulas.values():
        by_node.setdefault(formula.node, []).append(formula)
    checks = CrossChecks(Comparison(), Comparison(), Comparison(), Comparison())
    facts = {fact["name"]: fact for fact in measured["facts"] if fact.get("origin", "measured") == "measured"}
    for name, evidence in measured["evidence"].items():
        _compare_methods(checks.methods, name, evidence)
        if name in facts:
            _compare_formulas(checks.formulas, name, facts[name], evidence, by_node)
    declared = declared_memory()
    for name, fact in facts.items():
        room, _, short = name.rpartition(".")
        memory = declared.get(short if room in ("torch", "Tensor") else f"{room}_{short}")
        if memory is None or room.startswith("nn"):
            continue
        first = fact["parameters"][0].lstrip("*") if fact["parameters"] else ""
        wrote = {
            each for case in fact["cases"] for each in (*case.get("writes", ()), *case.get("may_write", ()))
        }
        shared = {
            each["alias"] for case in fact["cases"] for each in case.get("outputs", ()) if each.get("alias")
        }
        declared_writes = _spelled(memory.writes, first)
        checks.writes.note(
            name,
            wrote == declared_writes,
            f"written: {_listed(wrote)}; declared: {_listed(declared_writes)}",
            "writes",
        )
        declared_views = _spelled(memory.aliases, first)
        checks.views.note(
            name,
            shared - wrote == declared_views - wrote,
            f"handed out: {_listed(shared - wrote)}; declared: {_listed(declared_views - wrote)}",
            "views",
        )
    return checks


def _spelled(names: set[str], first: str) -> set[str]:
    return {first if each == "self" else each for each in names}


def _compare_methods(comparison: Comparison, name: str, evidence: Mapping[str, Any]) -> None:
    different = sum(evidence["disagreements"].values())
    comparison.compared += evidence["checks"] - different
    if evidence["checks"]:
        comparison.operators.add(name)
    for text, times in sorted(evidence["disagreements"].items()):
        comparison.note(name, False, text, "methods")
        comparison.compared += times - 1


def _compare_formulas(
    comparison: Comparison,
    name: str,
    fact: Mapping[str, Any],
    evidence: Mapping[str, Any],
    by_node: Mapping[str, list[Formula]],
) -> None:
    first = fact["parameters"][0].lstrip("*") if fact["parameters"] else ""
    wrote = {each for case in fact["cases"] for each in (*case.get("writes", ()), *case.get("may_write", ()))}
    for node, requiring, kept, given in evidence["nodes"]:
        candidates = by_node.get(node, [])
        if not candidates:
            continue
        predictions = [_predicted(each, name, first, requiring, given) for each in candidates]
        usable = [each for each in predictions if each is not None]
        if not usable:
            continue
        inputs = {place for place in kept if not place.startswith("result")}
        # An in-place form keeps a copy of the old content, which is nobody's tensor.
        usable += [each - (wrote - inputs) for each in usable]
        comparison.note(
            name,
            any(inputs == each for each in usable),
            f"{node}, {requiring} requires grad; saved: {_listed(inputs)}; formula: {_listed(usable[0])}",
            "formulas",
        )


def _predicted(formula: Formula, name: str, first: str, requiring: str, given: list[str]) -> set[str] | None:
    """Argument places that the formula says are kept, or None where its arguments cannot be matched to ours."""
    spelled = {argument: first if argument == "self" else argument for argument in formula.arguments}
    if name.startswith("Tensor.__r") and "other" in spelled and formula.node != "RsubBackward1":
        # A reflected operator calls the function with its two operands exchanged.
        spelled["self"], spelled["other"] = "other", "self"
    places = set(spelled.values())
    if requiring not in places or any(place not in places for place in given):
        return None
    back = {ours: theirs for theirs, ours in spelled.items()}
    kept = {
        spelled[what]
        for what, needs in formula.saved_inputs.items()
        if (not needs or back[requiring] in needs) and spelled[what] in given
    }
    # An in-place form keeps a copy of the old content, which is nobody's tensor.
    return (
        kept - {spelled["self"]} if formula.schema.split(".")[0].endswith("_") and "self" in spelled else kept
    )


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
