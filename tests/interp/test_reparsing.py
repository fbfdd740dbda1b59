"""A text that is parsed edit by edit has the units and the problems of a text that is parsed once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gradsight.analysis import analyze
from gradsight.interp.parsing import Parsed, parse_text, reparse
from gradsight.model.source import Source

ROOT = Path(__file__).parents[2]
TEXTS = {
    "script": (ROOT / "benchmarks" / "texts" / "train_classifier.py").read_text(encoding="utf-8"),
    "semicolons": 'a = """\n"""; b = (1,\n 2); c = 3\n\n\ndef f(): pass\nif a: b; c\n' * 3,
    "text that looks like code": 'x = 1\ns = """\n\ndef inner(:\n    pass\n\nclass Text\n"""\n\n\ndef f(a):\n    return a\n\n\n@deco\nclass C:\n    pass\n',
    "nothing": "",
    "carriage returns": "import torch\r\n\r\n\r\ndef f(x):\r\n    return x\r\n\r\ny = f(1)\r\n",
}
SNIPPETS = ("(", ")", '"""', "\n", "\n\n", "def f():\n", "    ", "x = 1\n", ":", "é😀", "\\", "#", "\t", "@d\n", "\n\ndef g():\n    pass\n\n", "\r\n", "if x:\n", "lambda", "\0", "\ud83d")  # fmt: skip


def shown(parsed: Parsed) -> object:
    """What two parses must have in common."""
    return (
        [(unit.start, unit.end, unit.text, unit.repaired) for unit in parsed.units],
        parsed.problems,
        parsed.window,
    )


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("seed", range(4))
def test_edits_are_parsed_as_the_whole_text_is(name: str, seed: int) -> None:
    chance = random.Random(f"{name}{seed}")
    text = TEXTS[name]
    parsed = parse_text("t.py", text)
    for _ in range(60):
        place = chance.randrange(len(text) + 1)
        if chance.random() < 0.5:
            edited = text[:place] + chance.choice(SNIPPETS) + text[place:]
        else:
            edited = text[:place] + text[place + chance.choice((1, 1, 2, 30)) :]
        if chance.random() < 0.15:
            edited = TEXTS[name]
        parsed = reparse("t.py", edited, text, parsed.units, parsed.window)
        text = edited
        assert shown(parsed) == shown(parse_text("t.py", text))


def test_untouched_units_stay_the_same_objects_when_the_text_breaks() -> None:
    text = TEXTS["script"]
    parsed = parse_text("t.py", text)
    place = text.index("    return", len(text) // 2)
    broken = reparse("t.py", text[:place] + "    spare (\n" + text[place:], text, parsed.units, None)
    assert len(broken.problems) == 1
    assert len([unit for unit in parsed.units if unit not in broken.units]) == 1


def test_a_break_leaves_the_findings_before_and_behind_it() -> None:
    text = "a = 1\n\n\ndef f(:\n    pass\n\n\ndef g():\n    return (\n\n\ndef h():\n    return 1\n"
    parsed = parse_text("t.py", text)
    assert parsed.units[0].text == "a = 1"
    assert parsed.units[-1].text.startswith("def h")
    assert parsed.problems[0].span.line == 4


HAZARD = "w = torch.ones(3, requires_grad=True)\ny = w.exp()\ny += 1\ny.sum().backward()\n"


BROKEN = {
    "null": "x = '\0'\n",
    "half a character": "x = 1\ny = '\ud800' + '\0'\n",
    "thousands of breaks in a row": ")\n" * 3_000,
    "more breaks than are repaired": "".join(
        f"def f{number}():\n    x = (\n\ndef g{number}():\n    pass\n\n" for number in range(15)
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_can_be_read_of_a_broken_text_is_analysed(name: str) -> None:
    report = analyze(Source("t.py", "import torch\n" + BROKEN[name] + HAZARD))
    assert "GS101" in [finding.code for finding in report.findings]
    assert report.syntax_problems


def test_a_null_character_is_told_where_it_stands() -> None:
    report = analyze(Source("t.py", "import torch\nx = '\0'\n"))
    assert [(each.span.line, each.span.column) for each in report.syntax_problems] == [(2, 5)]
