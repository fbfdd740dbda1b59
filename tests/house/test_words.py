"""The project speaks of itself alone: no trace of the machine it was written on, nothing left undone or switched off.

The forbidden words are put together from parts here, so that this file does not contain them.
"""

from __future__ import annotations

import re

import pytest

from tests.house.tree import relative, tracked_files

MACHINE_PATHS = r"(^|[^a-z.])/(?:work|root|farm)/|/tmp/" + "[a-z]|/opt/(?:wheels|pypi)"
REGISTRY_HOSTS = "|".join(
    ["pypi" + r"\.org", "python" + "hosted", "npm" + r"js\.", r"download\.py" + r"torch\."]
)
WORKPLACE = "|".join(
    [
        r"\b(?:HOUSE|TRUTHS|RECIPES|DEVELOPERS)" + r"\.md",
        r"\bissue" + r" #?\d",
        r"\bsub-?" + "agent",
        r"\bCl" + r"aude\b",
        r"\bshared/" + "(?:cases|prototypes)",
    ]
)
UNDONE = "|".join(
    [
        r"\bTO" + r"DO\b",
        r"\bFIX" + r"ME\b",
        "raise NotImpl" + "ementedError",
        r"\bmark\.(?:skip|x" + "fail)",
        r"pytest\.(?:skip|x" + r"fail|importor" + r"skip)\(",
        r"\b(?:it|test|describe)\.(?:skip|only|to" + r"do)\(",
    ]
)


def test_no_path_of_a_machine_is_written_down() -> None:
    check(MACHINE_PATHS)


def test_no_package_registry_is_named() -> None:
    check(REGISTRY_HOSTS)


def test_no_word_about_the_workplace() -> None:
    check(WORKPLACE)


def test_nothing_is_left_undone_or_switched_off() -> None:
    check(UNDONE, "server", "client", "tests", "Makefile", ".ci")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (MACHINE_PATHS, "cd /wo" + "rk/main"),
        (MACHINE_PATHS, "open('/tm" + "p/out')"),
        (REGISTRY_HOSTS, "https://py" + "pi.org/simple"),
        (WORKPLACE, "see issue" + " 12"),
        (UNDONE, "# TO" + "DO: later"),
        (UNDONE, "@pytest.mark.sk" + "ip"),
    ],
)
def test_the_patterns_notice_what_they_forbid(pattern: str, text: str) -> None:
    assert re.search(pattern, text)


def check(pattern: str, *folders: str) -> None:
    """No line of a text file in these folders (or in the whole repository) matches."""
    forbidden = re.compile(pattern)
    found = []
    for path in tracked_files(*folders):
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [
            f"{relative(path)}:{number}: {line.strip()[:120]}"
            for number, line in enumerate(lines, 1)
            if forbidden.search(line)
        ]
    assert not found, "\n".join(found)
