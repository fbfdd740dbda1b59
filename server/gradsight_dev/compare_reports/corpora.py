"""The programs to analyse: the fixtures, generated programs, and the files of packages, always in the same order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FIXTURES = Path(__file__).parents[3] / "fixtures"
TORCH = b"torch"


@dataclass(frozen=True, slots=True)
class Item:
    """One program: the name it has in a snapshot, and either its text or the file that holds it."""

    name: str
    text: str = ""
    file: Path | None = None
    base: Path | None = None
    """The folder that names in the report are relative to."""


class UnknownCorpus(Exception):
    """The words name no corpus; the text says what would."""


def corpus(words: Sequence[str]) -> Iterator[Item]:
    """The programs that `fixtures [DIR]`, `fuzz N SEED` or `packages DIR…` names.  Raises UnknownCorpus at once."""
    kind, *rest = words
    if kind == "fixtures" and len(rest) <= 1:
        folder = Path(rest[0]) if rest else FIXTURES
        return files_below(_folders([folder]))
    if kind == "fuzz" and len(rest) == 2 and all(word.isdigit() for word in rest):
        return generated(int(rest[0]), int(rest[1]))
    if kind == "packages" and rest:
        return files_below(_folders([Path(word) for word in rest]))
    raise UnknownCorpus(
        f"no such corpus: {' '.join(words)}; there are: fixtures [DIR], fuzz N SEED, packages DIR…"
    )


def files_below(folders: Sequence[Path]) -> Iterator[Item]:
    """Every Python file that speaks of torch, as `gradsight check` would choose them; named from the folder's own name on."""
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            if file.is_file() and TORCH in file.read_bytes():
                yield Item(file.relative_to(folder.parent).as_posix(), file=file, base=folder.parent)


def generated(count: int, seed: int) -> Iterator[Item]:
    """The programs that the random tester writes for these seeds; torch is not asked."""
    from gradsight_dev.fuzz.grammar import generate, seeds

    for one in seeds(seed, count, ()):
        program = generate(one)
        yield Item(program.path, text=program.text)


def _folders(folders: Sequence[Path]) -> list[Path]:
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if missing:
        raise UnknownCorpus(f"no such folder: {', '.join(missing)}")
    return [folder.resolve() for folder in folders]
