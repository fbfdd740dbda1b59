"""What an agent observed, in the words of the rules: a kind of fault becomes the code of the rule that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any


def coded(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report of an agent, with the code of its rule for everything that was seen."""
    return {
        **report,
        "faults": [{"code": code_of(fault["kind"]), **fault} for fault in report["faults"]],
        "caught": [
            {**error, "code": code_of(error["kind"]) if error.get("kind") else None}
            for error in report.get("caught") or ()
        ],
        "sighted": [[code_of(kind), path, row] for kind, path, row in report.get("sighted") or ()],
    }


def code_of(kind: str) -> str:
    """The code of the rule that a kind belongs to."""
    return _codes().get(kind, kind)


@cache
def _codes() -> dict[str, str]:
    from gradsight.rules import ALL

    return {kind: rule.code for rule in ALL for kind in rule.observed_as}
