"""`gradsight explain` and `gradsight rules`: the manual on the command line."""

from __future__ import annotations

import json

import pytest

from gradsight import cli
from gradsight.cli import shell
from gradsight.rules import ALL


def check(
    capsys: pytest.CaptureFixture[str], argv: list[str], code: int, out: str = "", err: str = ""
) -> str:
    """This call ends with this code and says these words; hands back what it said."""
    assert cli.main(argv) == code
    said = capsys.readouterr()
    assert out in said.out
    assert err in said.err
    return said.out


@pytest.mark.parametrize("word", ["GS101", "gs101", "inplace-on-saved"])
def test_a_rule_is_explained_by_code_or_name(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = check(capsys, ["explain", word], shell.CLEAN, out="# GS101 inplace-on-saved\n")
    assert "\x1b" not in said


def test_several_rules_are_explained_in_one_call(capsys: pytest.CaptureFixture[str]) -> None:
    said = check(capsys, ["explain", "GS102", "GS101"], shell.CLEAN)
    assert said.index("# GS102") < said.index("# GS101")


def test_an_unknown_rule_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    check(capsys, ["explain", "inplace-on-safed"], shell.FAILED, err="did you mean inplace-on-saved")


def test_all_rules_are_listed_once_with_their_summary(capsys: pytest.CaptureFixture[str]) -> None:
    said = check(capsys, ["rules"], shell.CLEAN, out="Writing in place")
    for rule in ALL:
        assert said.count(f"{rule.code}  {rule.name} ") == 1
        assert rule.summary in said


def test_rules_are_listed_as_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    listing = json.loads(check(capsys, ["rules", "--format", "json"], shell.CLEAN))
    assert [entry["code"] for entry in listing] == [rule.code for rule in ALL]
