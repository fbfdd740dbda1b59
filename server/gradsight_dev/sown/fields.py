"""The files that bugs are sown into: which of a folder of repositories, and in which half of it each repository is.

A folder holds one folder per repository.  The *open* half is read to find causes; the *closed* half is only scored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

HALVES = ("open", "closed")
_FRAMEWORKS = "accelerate catalyst composer deepspeed fastai ignite lightning mmcv mmengine nemo pytorch_lightning trl".split()
_FRAMEWORK = re.compile(rf"^\s*(?:from|import)\s+(?:{'|'.join(_FRAMEWORKS)})\b", re.MULTILINE)
MOST_CHARACTERS = 150_000


def half_of(repository: str) -> str:
    """The half that a repository belongs to, by its name alone."""
    return HALVES[_hash(repository.lower()) % 2]


def repositories(folder: Path) -> list[Path]:
    """The repositories in a folder, by their names."""
    return sorted(one for one in folder.iterdir() if one.is_dir())


def training_files(repository: Path, most: int) -> Iterator[Path]:
    """Some files of a repository that train without a framework: which, a hash of their paths decides."""
    found = []
    for path in sorted(repository.rglob("*.py")):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if trains(text):
            found.append((_hash(path.relative_to(repository).as_posix()), path))
    return (path for _, path in sorted(found)[:most])


def trains(text: str) -> bool:
    """Whether a text has a training loop of its own."""
    if len(text) > MOST_CHARACTERS or ".backward(" not in text or ".step(" not in text:
        return False
    return _FRAMEWORK.search(text) is None


def users_of(path: Path, repository: Path) -> list[Path]:
    """Files of the repository that import this one, by the text of their import statements; the shortest paths first."""
    module = re.escape(path.stem if path.stem != "__init__" else path.parent.name)
    imports = re.compile(rf"^\s*(?:from\s+[\w.]*\b{module}\s+import|import\s+[\w., ]*\b{module}\b|from\s+[\w.]+\s+import\s+[^\n#]*\b{module}\b)", re.M)  # fmt: skip
    found = []
    for other in sorted(repository.rglob("*.py")):
        if other == path:
            continue
        text = other.read_text(encoding="utf-8", errors="replace")
        if len(text) <= MOST_CHARACTERS and imports.search(text):
            found.append(other)
    return sorted(found, key=lambda one: (len(one.parts), str(one)))


def _hash(text: str) -> int:
    return int(sha256(text.encode()).hexdigest()[:8], 16)
