"""The sources are in one style: linted, formatted, strictly typed, in small modules that say what they are for."""

from __future__ import annotations

import ast
import subprocess
import sys

from tests.house.tree import ROOT, SERVER, relative, tracked_files

LONGEST_MODULE = 600


def test_ruff_has_no_complaint() -> None:
    check("ruff", "check", "--no-cache")


def test_sources_are_formatted() -> None:
    check("ruff", "format", "--no-cache", "--check", "--diff")


def test_every_module_opens_with_what_it_is_for() -> None:
    silent = [
        relative(path)
        for path in sorted(SERVER.rglob("*.py"))
        if not (ast.get_docstring(ast.parse(path.read_text())) or "").strip()
    ]
    assert not silent


def test_no_module_is_too_long_to_hold_one_purpose() -> None:
    long = {
        relative(path): lines
        for path in tracked_files("*.py", "*.ts", "*.mjs")
        if (lines := len(path.read_text().splitlines())) > LONGEST_MODULE
    }
    assert not long


def test_there_is_no_drawer_for_odds_and_ends() -> None:
    """But the models of libraries, which have the names that the libraries have given."""
    drawers = [
        relative(path)
        for path in tracked_files("server/*.py", "client/*.ts", "tests/*.py", ":!server/gradsight/models")
        if {"utils", "util", "misc", "common", "helpers"} & {*path.parts, path.stem}
    ]
    assert not drawers


def check(tool: str, *arguments: str) -> None:
    """The tool of this environment, run at the root with the project's own settings, is content."""
    outcome = subprocess.run(
        [sys.executable, "-m", tool, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
