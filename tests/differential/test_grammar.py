"""Generated programs: the same for a seed everywhere, valid, and spread over kinds and verdicts."""

from __future__ import annotations

import ast
from collections import Counter

from gradsight_dev.fuzz.campaign import run_campaign
from gradsight_dev.fuzz.grammar import KINDS, generate, seeds
from gradsight_dev.fuzz.oracle import FAMILIES
from gradsight_dev.fuzz.summary import Summary, summarise

SAMPLE = 700


def sample() -> Summary:
    """A run on torch alone, made once."""
    if not _memory:
        _memory.append(summarise(run_campaign(10_000, SAMPLE, with_engine=False)))
    return _memory[0]


_memory: list[Summary] = []


def test_a_seed_always_gives_the_same_program() -> None:
    assert [generate(seed) for seed in range(50)] == [generate(seed) for seed in range(50)]


def test_programs_differ() -> None:
    assert len({generate(seed).text for seed in range(300)}) == 300


def test_programs_parse() -> None:
    for seed in range(300):
        ast.parse(generate(seed).text)


def test_seeds_of_one_kind_give_that_kind() -> None:
    chosen = list(seeds(7, 20, ["recurrent"]))
    assert len(chosen) == 20
    assert {generate(seed).kind for seed in chosen} == {"recurrent"}


def test_every_kind_comes_up() -> None:
    assert {generate(seed).kind for seed in range(600)} == {kind.name for kind in KINDS}


def test_about_two_of_five_programs_fail() -> None:
    assert 0.3 <= sample().verdicts["raises"] / SAMPLE <= 0.5


def test_most_others_are_exact_and_some_are_silently_wrong() -> None:
    verdicts = sample().verdicts
    assert verdicts["exact"] / SAMPLE >= 0.4
    assert verdicts["silent"] >= 5
    assert verdicts["cut"] >= 5


def test_hardly_any_program_fails_for_foreign_reasons() -> None:
    assert sample().verdicts["foreign"] / SAMPLE <= 0.01, sample().foreign


def test_every_kind_has_failing_and_running_programs() -> None:
    for kind, verdicts in sample().verdicts_by_kind.items():
        assert verdicts["raises"], kind
        assert verdicts["raises"] < sum(verdicts.values()), kind


def test_failures_are_of_many_families() -> None:
    families: Counter[str] = sample().families
    assert len(set(families) & {family.name for family in FAMILIES}) >= 11
    assert families.most_common(1)[0][1] / families.total() <= 0.6
