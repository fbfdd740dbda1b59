"""What is true of a rule stands in its own module: the facets fit each other, and nothing else names a rule."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradsight.model.events import KINDS
from gradsight.model.rule import Rule
from gradsight.rules import ALL, MODULES, kin_of, rule_of

PRODUCT = Path(__file__).resolve().parents[2] / "server" / "gradsight"
# An example in the help of a command.
EXAMPLES = {"cli/explain.py: a code or a name, such as GS101 or inplace-on-saved"}


@pytest.mark.parametrize("facet", ["code", "name", "page", "judge"])
def test_no_two_rules_share_what_is_their_own(facet: str) -> None:
    assert set(Counter(getattr(rule, facet) for rule in ALL).values()) == {1}


def test_rules_are_listed_in_the_order_of_their_codes() -> None:
    assert [rule.code for rule in ALL] == sorted(rule.code for rule in ALL)


def test_every_module_in_the_room_is_a_rule_with_the_name_of_its_file() -> None:
    found = {path.stem for path in (PRODUCT / "rules").glob("*.py")} - {"__init__"}
    assert found == set(MODULES)
    assert [rule.name.replace("-", "_") for rule in ALL] == list(MODULES)


def test_every_kind_of_event_is_judged_and_every_judged_kind_is_described() -> None:
    assert {kind for rule in ALL for kind in rule.kinds} == set(KINDS)


def test_every_kind_of_event_is_emitted_by_the_machine() -> None:
    machine = "\n".join(path.read_text("utf-8") for path in (PRODUCT / "detect").rglob("*.py"))
    assert [kind for kind in KINDS if f'"{kind}"' not in machine] == []


def test_a_rule_silences_rules_that_exist_and_never_itself() -> None:
    for rule in ALL:
        for code in (*rule.silences, *rule.silences_callers):
            assert rule_of(code).code == code != rule.code


def test_a_silenced_rule_silences_none() -> None:
    silenced = {code for rule in ALL for code in (*rule.silences, *rule.silences_callers)}
    assert [code for code in silenced if rule_of(code).silences or rule_of(code).silences_callers] == []


def test_a_word_of_kinship_is_shared() -> None:
    assert [rule.code for rule in ALL if rule.kin and len(kin_of(rule.code)) < 2] == []
    assert kin_of("GS102") == {"GS102", "GS103"}
    assert kin_of("GS101") == {"GS101"}


def test_causes_of_one_message_are_ranked() -> None:
    ranks = Counter((cause.message.pattern, cause.rank) for rule in ALL for cause in rule.messages)
    assert set(ranks.values()) == {1}
    assert {(pattern, 1) for pattern, _ in ranks} <= set(ranks)


def test_who_calls_a_write_harmless_does_not_call_it_bad() -> None:
    assert [rule.code for rule in ALL if rule.says_harmless and rule.is_bad_write] == []


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.name)
def test_a_page_offers_a_fix_exactly_if_the_rule_has_one(rule: Rule) -> None:
    assert ("No fix is offered" in rule.page) == (rule.fix is None)


def test_what_no_rule_says_has_no_facets() -> None:
    unknown = rule_of("GS001")
    assert (unknown.code, unknown.advice, unknown.fix, unknown.torch_raises) == ("", "", None, False)


def test_no_rule_is_named_outside_its_room() -> None:
    named = {
        f"{path.relative_to(PRODUCT).as_posix()}: {text}"
        for path in PRODUCT.rglob("*.py")
        if path.parent.name != "rules"
        for text in strings_in(path)
        if re.search(r"\bGS[1-9]\d", text)
    }
    assert named == EXAMPLES


def strings_in(path: Path) -> Iterator[str]:
    """The strings of a module that are no documentation."""
    tree = ast.parse(path.read_text("utf-8"))
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value
