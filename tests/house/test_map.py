"""The map in docs/architecture.md shows what is there: every path on it exists, and every package is on it."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from tests.house.tree import ROOT, relative, tracked_files

MAP = ROOT / "docs" / "architecture.md"


def test_every_path_on_the_map_exists() -> None:
    missing = [path for path in mapped_paths() if not (ROOT / path).exists()]
    assert not missing


def test_every_package_is_on_the_map() -> None:
    packages = {
        PurePosixPath(*parts[:depth]).as_posix()
        for path in tracked_files()
        if (parts := PurePosixPath(relative(path)).parts) and not parts[0].startswith(".")
        for depth in [3 if parts[:2] == ("server", "gradsight") else 2 if parts[0] == "server" else 1]
        if len(parts) > depth or parts[0] == "server"
    }
    forgotten = sorted(packages - set(mapped_paths()))
    assert not forgotten


def test_every_path_the_text_mentions_exists() -> None:
    prose = re.sub(r"```.*?```", "", MAP.read_text(), flags=re.DOTALL)
    mentioned = re.findall(r"`((?:server|client|tests|docs|fixtures|benchmarks|\.ci)/[^`*<>\s]*)`", prose)
    missing = [path for path in mentioned if not (ROOT / path).exists()]
    assert not missing


def mapped_paths() -> list[str]:
    """The paths of the tree that the map draws: two spaces of indent per level, then a name, then its purpose."""
    drawing = re.search(r"```text\n(.*?)```", MAP.read_text(), flags=re.DOTALL)
    assert drawing, "the map has lost its drawing"
    trail: list[str] = []
    paths = []
    for line in drawing.group(1).splitlines():
        entry = re.match(r"( *)(\S+)  ", line + "  ")
        if entry and not line.startswith(" " * 16):
            depth = len(entry.group(1)) // 2
            trail = [*trail[:depth], entry.group(2).rstrip("/")]
            paths.append("/".join(trail))
    return paths
