"""The examples of the manual pages and their claims, read from the rules' own docstrings.

*Block* is one Python example of a page.  A *claim* is a comment at the end of a line:
- `# error: …`, `# warning: …`, `# info: …`, `# hint: …`: GradSight says this here; the text is a rule's code or part of the
  message, and stands for the page's own rule when it is a code;
- `# raises: …`, `# warns: …`: torch does this here; the text is part of what it says.
A line without a claim is a claim too: silence from both.  Hints are an exception: they may be there unclaimed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gradsight.model.rule import Rule
from gradsight.rules import ALL

OURS = ("error", "warning", "info", "hint")
TORCHS = ("raises", "warns")
_CLAIM = re.compile(rf"#\s*({'|'.join(OURS + TORCHS)}):\s*(.*?)\s*(?=#\s*(?:{'|'.join(OURS + TORCHS)}):|$)")
_FENCE = re.compile(r"^```(\w*)\s*$")
_HEADING = re.compile(r"^## (.+?)\s*$")

WHY = ("Why torch refuses", "What goes wrong silently", "Why it is worth knowing")
USE_INSTEAD = "Use instead"
NOT_REPORTED = "Not reported"
FIX_SAFETY = "Fix safety"


@dataclass(frozen=True, slots=True)
class Claim:
    """What somebody says on a line: `kind` is a severity of ours, or one of torch's two ways to speak."""

    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind}: {self.text}"


@dataclass(frozen=True, slots=True)
class Block:
    """One example: the rule it belongs to, its number on the page from 1, the heading it stands under, its text."""

    rule: Rule
    number: int
    heading: str
    text: str

    @property
    def id(self) -> str:
        return f"{self.rule.name}-{self.number}"

    @property
    def path(self) -> str:
        """The name under which the example is analysed and run."""
        return f"{self.rule.name.replace('-', '_')}_{self.number}.py"

    def claims(self, kinds: tuple[str, ...]) -> list[Claim]:
        """The claims of these kinds, in reading order."""
        return [claim for claim in read_claims(self.text) if claim.kind in kinds]

    def bare_text(self) -> str:
        """The example without its claims, as a user would have written it."""
        return "\n".join(_bare(line) for line in self.text.split("\n"))

    def program(self) -> str:
        """The example without claims and proofs: what a fix starts from, and what it must arrive at."""
        lines = self.bare_text().split("\n")
        return "\n".join(line for line in lines if not line.lstrip().startswith("assert "))


def read_claims(text: str) -> Iterator[Claim]:
    """All claims of a text."""
    for number, line in enumerate(text.split("\n"), start=1):
        for kind, said in _CLAIM.findall(line):
            yield Claim(number, kind, said)


def headings_of(rule: Rule) -> list[str]:
    """The headings of a page, in order; those inside examples are none."""
    found = []
    is_code = False
    for line in rule.page.split("\n"):
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code and (heading := _HEADING.match(line)):
            found.append(heading.group(1))
    return found


def blocks_of(rule: Rule) -> list[Block]:
    """The Python examples of a page, in order."""
    found: list[Block] = []
    heading = ""
    language = ""
    lines: list[str] | None = None
    for line in rule.page.split("\n"):
        fence = _FENCE.match(line)
        if lines is None and fence:
            lines, language = [], fence.group(1)
        elif lines is not None and fence:
            if language == "python":
                found.append(Block(rule, len(found) + 1, heading, "\n".join(lines) + "\n"))
            lines = None
        elif lines is not None:
            lines.append(line)
        elif title := _HEADING.match(line):
            heading = title.group(1)
    return found


def all_blocks() -> list[Block]:
    """Every example of every page."""
    return [block for rule in ALL for block in blocks_of(rule)]


def repairs() -> list[tuple[Block, Block]]:
    """For each page the first example and the one to use instead.

    Where a rule has a fix, it leads from the `program()` of the first to the `program()` of the second.
    """
    pairs = []
    for rule in ALL:
        blocks = blocks_of(rule)
        instead = [block for block in blocks if block.heading == USE_INSTEAD]
        if blocks and instead:
            pairs.append((blocks[0], instead[0]))
    return pairs


def _bare(line: str) -> str:
    claim = _CLAIM.search(line)
    return line[: claim.start()].rstrip() if claim else line
