"""Begins a rule: its module with the skeleton of its page, its line in the list of rules, and the skeleton of its test.

`python -m gradsight_dev.new_rule GS611 forward-called --kind forward-called` writes them; what is left to do is printed.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from gradsight.model.events import KINDS
from gradsight.rules import ALL, MODULES
from gradsight.session.pages import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "server" / "gradsight" / "rules"
TESTS = ROOT / "tests" / "rules"
COMMAND = "python -m gradsight_dev.new_rule"


def main(arguments: list[str] | None = None) -> int:
    """Write the three pieces, or say what is wrong with the words; 2 then."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("code", help="`GS`, the digit of a family, and two digits that were never used")
    parser.add_argument("name", help="words with hyphens, that read well after `allow`")
    parser.add_argument("--kind", help="the kind of event that it judges (the name of the rule)")
    given = parser.parse_args(arguments)
    kind = given.kind or given.name
    problem = problem_with(given.code, given.name)
    if problem:
        print(f"{COMMAND}: {problem}", file=sys.stderr)
        return 2
    module = given.name.replace("-", "_")
    written = [RULES / f"{module}.py", TESTS / f"test_{module}.py"]
    written[0].write_text(rule_text(given.code, given.name, kind), encoding="utf-8")
    written[1].write_text(test_text(given.code, given.name, kind), encoding="utf-8")
    listing = RULES / "__init__.py"
    listing.write_text(registered(listing.read_text(encoding="utf-8"), given.code, module), encoding="utf-8")
    for path in (*written, listing):
        print(f"wrote {path.relative_to(ROOT).as_posix()}")
    print(left_to_do(kind))
    return 0


def problem_with(code: str, name: str) -> str:
    """What speaks against these words; nothing for a rule that can be begun."""
    if not re.fullmatch(r"GS\d{3}", code) or code[:3] not in FAMILIES:
        families = ", ".join(f"{prefix} {family.lower()}" for prefix, family in FAMILIES.items())
        return f"{code} is no code: it begins with a family ({families}) and has two more digits"
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        return f"{name} is no name: small letters and digits, in words with hyphens"
    for rule in ALL:
        if code == rule.code:
            return f"{code} is {rule.name}"
        if name == rule.name:
            return f"{name} is {rule.code}"
    return ""


def registered(listing: str, code: str, module: str) -> str:
    """The list of rules with one more line, where its code belongs."""
    after = [known for rule, known in zip(ALL, MODULES) if rule.code < code]
    anchor = f'    "{after[-1]}",\n' if after else "MODULES = (\n"
    return listing.replace(anchor, f'{anchor}    "{module}",\n')


def left_to_do(kind: str) -> str:
    """What a person does next."""
    steps = ["write the page: every example is run on torch, and its comments are claims"]
    if kind not in KINDS:
        steps.insert(
            0, f"describe the event `{kind}` in model/events.py, and let a detector in detect/ claim it"
        )
    steps.append("fill in the other facets of `Rule` that hold for it: model/rule.py names them all")
    steps.append("python -m pytest tests/rules")
    steps.append("python -m gradsight_dev.rule_pages and python -m gradsight_dev.settings_schema")
    return "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))


def rule_text(code: str, name: str, kind: str) -> str:
    """The module of a rule that judges every event of a kind."""
    return (
        RULE_TEXT.replace("CODE", code)
        .replace("NAME", name)
        .replace("KIND", kind)
        .replace("EXAMPLE", EXAMPLE)
    )


def test_text(code: str, name: str, kind: str) -> str:
    """The test of what a rule makes of single events; programs are on its page."""
    return (
        TEST_TEXT.replace("CODE", code)
        .replace("NAME", name)
        .replace("MODULE", name.replace("-", "_"))
        .replace("KIND", kind)
    )


EXAMPLE = """\
```python
import torch

x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
```"""
RULE_TEXT = '''"""Say in one line what is found.

## What goes wrong silently

Say why it goes wrong. End each example line that is wrong with `# error: CODE`, what torch says with `# raises: …`; a fault
that torch does not notice ends in an `assert` which proves it. Where torch refuses, the heading is *Why torch refuses*.

EXAMPLE

## Use instead

Say what to write.

EXAMPLE

## Not reported

Show the look-alikes that are right.

EXAMPLE

## Fix safety

No fix is offered.
"""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'target')} is named here, with the words of the user"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule(
    "CODE",
    "NAME",
    ("KIND",),
    judge,
    __doc__,
    advice="say in one line what to do",
)
'''
TEST_TEXT = '''"""CODE NAME: what the rule makes of single events."""

from __future__ import annotations

from gradsight.rules.MODULE import RULE
from tests.rules.single_events import judged


def test_an_event_is_told_in_the_words_of_the_user() -> None:
    finding = judged(RULE, "KIND", target="weight")
    assert finding is not None
    assert (finding.code, finding.severity) == ("CODE", "warning")
    assert "weight" in finding.message


def test_an_event_that_rests_on_an_assumption_is_worth_less() -> None:
    finding = judged(RULE, "KIND", assumption="x requires grad")
    assert finding is not None
    assert (finding.certainty, finding.severity) == ("assumed", "info")
'''

if __name__ == "__main__":
    sys.exit(main())
