"""The fenced blocks of the manual: their language, their title, where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.house.tree import ROOT

_BLOCK = re.compile(
    r'^```(?P<language>[\w-]*)(?: title="(?P<title>[^"]*)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL
)
# Pages whose blocks are executed by the tests of the rules, or hold none.
ELSEWHERE = ("docs/rules/", "docs/facts-report.md", "docs/architecture.md")


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: str
    line: int
    language: str
    title: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """The pages whose blocks are executed here."""
    found = ["README.md", *(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
    return sorted(page for page in found if not page.startswith(ELSEWHERE))


def blocks(*languages: str, page: str | None = None) -> list[Block]:
    """All blocks in these languages."""
    return [
        block
        for each in (pages() if page is None else [page])
        for block in _blocks_of(each)
        if block.language in languages
    ]


def _blocks_of(page: str) -> Iterator[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, found["language"], found["title"] or "", found["text"])
