"""Programs of every family of hazards: written with a twin, judged by torch, held against the engine."""

from __future__ import annotations

import pytest

from gradsight_dev.fuzz.campaign import prepare
from gradsight_dev.fuzz.families import KINDS
from gradsight_dev.fuzz.families.__main__ import main
from gradsight_dev.fuzz.families.case import Case, examine, written
from gradsight_dev.fuzz.families.judge import effect_of, run
from gradsight_dev.fuzz.families.script import MAIN, Version
from gradsight_dev.fuzz.families.summary import Tally

FIRST = 31_000
STEP = "import torch\nw = torch.ones(2, requires_grad=True)\n(w * {}).sum().backward()\nprint(w.grad)\n"


def effect(hazard: str, twin: str) -> str:
    ran = [run(Version({MAIN: text}, {MAIN: frozenset()})) for text in (hazard, twin)]
    return effect_of(*ran)


def test_torch_says_what_sets_two_versions_apart() -> None:
    assert effect(STEP.format(2), STEP.format(2)) == "same"
    assert effect(STEP.format(3), STEP.format(2)) == "differs"
    assert effect(STEP.format("torch"), STEP.format(2)) == "raises"
    assert effect(STEP.format(2), STEP.format("torch")).startswith("twin: ")


def test_a_program_is_the_same_each_time_and_names_its_causes() -> None:
    for seed in range(FIRST, FIRST + len(KINDS)):
        kind, hazard, twin = written(seed)
        assert (kind, hazard, twin) == written(seed)
        assert any(hazard.causes.values()) == (kind.effect == "harms"), kind.name
        assert hazard.texts != twin.texts, kind.name


def test_each_kind_is_found_on_a_causing_line_and_its_twin_is_silent() -> None:
    prepare()
    tally = Tally()
    for seed in range(FIRST, FIRST + len(KINDS)):
        tally.add(examine(seed))
    assert tally.meets_bars, "\n".join(tally.lines(verbose=True))
    assert sum(counts["discarded"] for counts in tally.results.values()) < len(KINDS) / 10


def test_a_miss_and_an_alarm_are_counted() -> None:
    hazard = next(kind for kind in KINDS if kind.effect == "harms")
    tally = Tally()
    tally.add(Case(1, hazard, "found"))
    assert tally.meets_bars
    tally.add(Case(2, hazard, "found", alarms=("error GS101 train.py:1 no",)))
    assert (tally.exact, tally.errors, tally.meets_bars) == (2, 1, False)
    tally = Tally()
    tally.add(Case(3, hazard, "missed"))
    assert tally.share() == (0, 1)
    assert "missed" in "\n".join(tally.lines(verbose=True))
    assert not tally.meets_bars


def test_the_command_prints_the_counts_of_a_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "2", "--only", "never cleared", "--seed", "5"]) == 0
    assert "order and protocol: 2 of 2 found" in capsys.readouterr().out
    assert main(["--only", "poetry"]) == 2
    assert "no kind is called so" in capsys.readouterr().err


def test_one_program_is_shown_with_its_twin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--program", str(FIRST)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("# train.py") == 2
    assert "expected" in printed
