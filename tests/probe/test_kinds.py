"""The agent speaks in kinds of what it observed; each kind belongs to one rule, and the agent knows of none."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import get_args

from gradsight.agent.faults import Kind
from gradsight.probe.kinds import coded
from gradsight.rules import ALL

AGENT = Path(__file__).resolve().parents[2] / "server" / "gradsight" / "agent"


def test_every_kind_belongs_to_one_rule_with_advice() -> None:
    owners = Counter(kind for rule in ALL for kind in rule.observed_as)
    assert sorted(owners.elements()) == sorted(get_args(Kind))
    assert [rule.code for rule in ALL if rule.observed_as and not rule.advice] == []


def test_every_kind_is_observed_somewhere() -> None:
    text = "\n".join(path.read_text("utf-8") for path in AGENT.glob("*.py") if path.name != "faults.py")
    assert [kind for kind in get_args(Kind) if f'"{kind}"' not in text] == []


def test_the_agent_knows_no_rule() -> None:
    assert [path.name for path in AGENT.rglob("*.py") if re.search(r"\bGS\d", path.read_text("utf-8"))] == []


def test_what_was_observed_gets_the_code_of_its_rule() -> None:
    seen = coded({"faults": [{"kind": "leaf-written"}], "sighted": [["detached", "program.py", 3]]})
    assert [each["code"] for each in seen["faults"]] == ["GS102"]
    assert seen["sighted"] == [["GS203", "program.py", 3]]
