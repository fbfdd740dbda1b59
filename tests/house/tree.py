"""Where things are in the repository, as the house tests see it."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "server"


def tracked_files(*patterns: str) -> list[Path]:
    """Files of the repository as git lists them, new ones included, ignored ones left out."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [ROOT / name for name in sorted(listing.split("\0")) if name and (ROOT / name).is_file()]


def relative(path: Path) -> str:
    """The path as a reader of the repository writes it."""
    return path.relative_to(ROOT).as_posix()
