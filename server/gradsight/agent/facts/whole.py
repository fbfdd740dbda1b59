"""The whole table of one torch as plain data: facts, the evidence behind them, and the names that have none.

The work can be cut into parts that run in separate processes; `combined` puts them together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from gradsight.agent.facts import catalog
from gradsight.agent.facts.by_hand import hand_facts, reason_for
from gradsight.agent.facts.formulas import formula_fact, load_formulas
from gradsight.agent.facts.measure import MeasuredCall
from gradsight.agent.facts.modules import database_constructions
from gradsight.agent.facts.optimizers import survey_optimizers
from gradsight.agent.facts.own_modules import own_constructions
from gradsight.agent.facts.own_samples import own_calls
from gradsight.agent.facts.signatures import Signatures
from gradsight.agent.facts.survey import described, survey_functions, survey_modules
from gradsight.agent.facts.torch_samples import TorchSamples, import_databases

OLDEST = (2, 1)
Progress = Callable[[int, int], None]


def unfit_reason() -> str:
    """Why this torch cannot be measured, or empty."""
    parts = torch.__version__.split("+")[0].split(".")
    try:
        version = (int(parts[0]), int(parts[1]))
    except (ValueError, IndexError):
        return ""
    if version < OLDEST:
        return f"torch {torch.__version__} is too old: {OLDEST[0]}.{OLDEST[1]} or later is needed"
    return ""


def measure_torch(part: int = 0, parts: int = 1, progress: Progress | None = None) -> dict[str, Any]:
    """Everything that belongs to this part: every `parts`-th name, starting at `part`."""
    torch.set_num_threads(1)
    op_db, module_db, trouble = import_databases()
    functions = catalog.functions()[part::parts]
    modules = list(catalog.modules())[part::parts]
    total = len(functions) + len(modules)
    facts: list[dict[str, Any]] = []
    evidence: dict[str, Any] = {}

    def note(found: Iterable[tuple[dict[str, Any], list[MeasuredCall]]]) -> None:
        for fact, observations in found:
            facts.append(fact)
            evidence[fact["name"]] = _evidence(observations)
            if progress is not None:
                progress(len(facts), total)

    signatures = Signatures()
    note(survey_functions(functions, TorchSamples(op_db), own_calls(), signatures))
    note(survey_modules(modules, database_constructions(module_db), own_constructions()))
    if part == 0:
        facts += survey_optimizers()
    return {
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "facts": facts,
        "evidence": evidence,
        "troubles": [trouble] if trouble else [],
    }


def combined(measured: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Parts put together, completed by formulas and by hand, with the rooms that coverage counts."""
    whole = dict(measured[0])
    facts = {fact["name"]: fact for each in measured for fact in each["facts"]}
    whole["evidence"] = {name: seen for each in measured for name, seen in each["evidence"].items()}
    whole["troubles"] = sorted({trouble for each in measured for trouble in each["troubles"]})
    for fact in hand_facts():
        facts.setdefault(fact["name"], fact)
    entries = [*catalog.functions(), *catalog.modules()]
    signatures = Signatures()
    formulas, trouble = load_formulas()
    if trouble:
        whole["troubles"].append(trouble)
    for entry in entries:
        signature = None if entry.name in facts else signatures.find(entry.path, entry.target)
        if signature is not None:
            derived = formula_fact(entry.name, described(entry.name, signature), formulas)
            if derived is not None:
                facts[entry.name] = derived
    rooms: dict[str, list[str]] = {}
    counted = [*catalog.overridable(), *catalog.factories(), *catalog.properties(), *catalog.modules()]
    for entry in counted:
        rooms.setdefault(entry.room, []).append(entry.name)
    whole["facts"] = [facts[name] for name in sorted(facts)]
    whole["missing"] = {entry.name: reason_for(entry.name) for entry in counted if entry.name not in facts}
    whole["rooms"] = rooms
    return whole


def _evidence(observations: list[MeasuredCall]) -> dict[str, Any]:
    disagreements: dict[str, int] = {}
    nodes = set()
    for each in observations:
        for text in each.disagreements:
            disagreements[text] = disagreements.get(text, 0) + 1
        nodes.update(each.single_nodes)
    return {
        "calls": len(observations),
        "checks": sum(each.checks for each in observations),
        "disagreements": disagreements,
        "nodes": sorted(nodes),
    }
