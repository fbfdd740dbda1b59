"""Every raising program of the fixtures is blamed on the right lines; no safe program is."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradsight.probe.standby import Standby
from tests.probe.expectation import check, expected_of, programs

ON_THE_SPOT = ("GS101", "GS102", "GS103", "GS106", "GS401", "GS402")


@pytest.mark.parametrize("path", programs("raising"), ids=lambda path: path.stem)
def test_raising_program_is_blamed(standby: Standby, path: Path) -> None:
    check(standby, path)


@pytest.mark.parametrize("path", programs("silent"), ids=lambda path: path.stem)
def test_silent_fault_is_found_on_its_line(standby: Standby, path: Path) -> None:
    check(standby, path)


@pytest.mark.parametrize("path", programs("safe"), ids=lambda path: path.stem)
def test_safe_program_comes_out_clean(standby: Standby, path: Path) -> None:
    check(standby, path)


@pytest.mark.parametrize("path", programs("safe"), ids=lambda path: path.stem)
def test_safe_program_comes_out_clean_of_the_fast_look(standby: Standby, path: Path) -> None:
    check(standby, path, "fast")


def fast_programs() -> list[Path]:
    return [
        path
        for path in programs("raising")
        if {code for code, _ in expected_of(path.read_text("utf-8")).faults} <= set(ON_THE_SPOT)
    ]


@pytest.mark.parametrize("path", fast_programs(), ids=lambda path: path.stem)
def test_fast_look_blames_the_same_lines(standby: Standby, path: Path) -> None:
    check(standby, path, "fast")


def test_there_are_enough_raising_programs() -> None:
    assert len(programs("raising")) >= 25
