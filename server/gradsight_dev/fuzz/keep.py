"""Keeps shrunk disagreements as fixtures: a program whose first lines say what torch does with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from gradsight_dev.fuzz.oracle import Truth, judge

FIXTURES = Path(__file__).parents[3] / "fixtures" / "differential"
TORCH_LINE = re.compile(r"# torch: (?P<claim>.+)")


@dataclass(frozen=True, slots=True)
class Kept:
    """A fixture: where it lies, its text, and what its first line claims of torch."""

    path: Path
    text: str
    claim: str


def keep(text: str, story: str, folder: Path = FIXTURES) -> Path:
    """Write the program as the next fixture; a program that is there already is not written twice."""
    folder.mkdir(parents=True, exist_ok=True)
    body = text.strip() + "\n"
    for known in kept_programs(folder):
        if known.text.split("\n", 2)[2] == body:
            return known.path
    number = 1 + max((int(path.name[:3]) for path in folder.glob("[0-9][0-9][0-9]_*.py")), default=0)
    name = re.sub(r"[^a-z0-9]+", "_", story.lower()).strip("_")[:40]
    path = folder / f"{number:03}_{name}.py"
    claim = claim_of(judge(f"#\n#\n{body}"))
    path.write_text(f"# torch: {claim}\n# {story}\n{body}", encoding="utf-8")
    return path


def kept_programs(folder: Path = FIXTURES) -> list[Kept]:
    """All fixtures in order."""
    kept = []
    for path in sorted(folder.glob("[0-9][0-9][0-9]_*.py")):
        text = path.read_text(encoding="utf-8")
        match = TORCH_LINE.match(text)
        kept.append(Kept(path, text, match["claim"].strip() if match else ""))
    return kept


def renew_claims(folder: Path = FIXTURES) -> list[Path]:
    """Write down anew what torch does with each kept program; the paths whose first line changed."""
    renewed = []
    for kept in kept_programs(folder):
        claim = claim_of(judge(kept.text))
        if claim != kept.claim:
            _, rest = kept.text.split("\n", 1)
            kept.path.write_text(f"# torch: {claim}\n{rest}", encoding="utf-8")
            renewed.append(kept.path)
    return renewed


def claim_of(truth: Truth) -> str:
    """The truth in one line, as fixtures carry it."""
    if not truth.failures:
        return truth.verdict
    stories = []
    for failure in truth.failures:
        lines = ", ".join(map(str, sorted(failure.causes)))
        if truth.verdict == "silent":
            stories.append(f"silent because of line {lines}")
        else:
            stories.append(
                f"raises {failure.error} ({failure.family}) at line {failure.line} because of line {lines}"
            )
    return "; ".join(stories)
