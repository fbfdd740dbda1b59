"""Generated programs: the same for a seed everywhere, valid, and spread over kinds and verdicts."""

from __future__ import annotations

import ast

import pytest

from gradsight_dev.fuzz.campaign import run_campaign
from gradsight_dev.fuzz.grammar import KINDS, generate, seeds
from gradsight_dev.fuzz.oracle import FAMILIES
from gradsight_dev.fuzz.summary import summarise

SAMPLE = 700


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


@pytest.mark.facts
def test_programs_fail_and_run_in_good_measure() -> None:
    """About two of five fail, in many ways; most others are exact; every kind does both; few fail for foreign reasons."""
    summary = summarise(run_campaign(10_000, SAMPLE, with_engine=False))
    verdicts, families = summary.verdicts, summary.families
    assert 0.3 <= verdicts["raises"] / SAMPLE <= 0.5
    assert verdicts["exact"] / SAMPLE >= 0.4
    assert verdicts["silent"] >= 3
    assert verdicts["cut"] >= 3
    assert verdicts["foreign"] / SAMPLE <= 0.01, summary.foreign
    assert len(set(families) & {family.name for family in FAMILIES}) >= 10
    assert families.most_common(1)[0][1] / families.total() <= 0.6
    for kind, counts in summary.verdicts_by_kind.items():
        assert counts["raises"], kind
        assert counts["raises"] < counts.total(), kind
