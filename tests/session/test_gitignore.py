"""Patterns of ignore files mean what git means by them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gradsight.session.gitignore import ignore_file, is_ignored

PATHS = (
    "a.py", "b/a.py", "b/c/a.py", "build/x.py", "src/build/x.py", "src/gen_1.py", "src/keep.py", "docs/deep/er/x.py",
    "docs/x.py", "tmp1/x.py", "tmpa/x.py", "#odd.py", "with space.py", "b/c/d/e.py",
)  # fmt: skip
RULES = [
    "a.py",
    "/a.py",
    "b/a.py",
    "b/*/a.py",
    "**/a.py",
    "b/**",
    "b/**/e.py",
    "docs/**/x.py",
    "build/",
    "/build/",
    "src/gen_?.py",
    "gen_*.py",
    "tmp[0-9]/",
    "tmp[!0-9]/",
    "\\#odd.py",
    "with\\ space.py",
    "*.py\n!keep.py",
    "src/*\n!src/keep.py",
    "# comment\n\n   \nb/",
    "[",
]


@pytest.mark.parametrize("rules", RULES)
def test_git_agrees(rules: str, tmp_path: Path) -> None:
    """The files that git would ignore are the files that we ignore."""
    for name in PATHS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text(rules + "\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    listing = subprocess.run(
        ["git", "-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    kept = {name for name in listing.split("\0") if name.endswith(".py")}
    assert {name for name in PATHS if not is_left_out(rules, name)} == kept


def is_left_out(rules: str, name: str) -> bool:
    """Whether the file or a folder around it is ignored."""
    files = [ignore_file("/repo", rules.splitlines())]
    parts = name.split("/")
    folders = ["/repo/" + "/".join(parts[:depth]) for depth in range(1, len(parts))]
    return is_ignored(files, f"/repo/{name}", False) or any(is_ignored(files, part, True) for part in folders)
