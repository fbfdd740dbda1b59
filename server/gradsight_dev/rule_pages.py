"""Writes docs/rules/: one page per rule, from the rule's own docstring, and a list of them all.

`python -m gradsight_dev.rule_pages` writes, `--check` only says whether the pages are fresh.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from gradsight.analysis import analyze
from gradsight.cli.documents import Documents
from gradsight.model.rule import Rule
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.rules import ALL
from gradsight.session.finding_text import lay_out
from gradsight.session.pages import FAMILIES, page_markdown

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "rules"
FIRST_EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
COMMAND = "python -m gradsight_dev.rule_pages"
LEGEND = """\
Every example is executed by the tests, by GradSight and by torch. Comments on a line are claims that both must meet:

| comment | claim |
| --- | --- |
| `# error:`, `# warning:`, `# info:`, `# hint:` | GradSight says this here, with this code |
| `# raises:`, `# warns:` | torch does this here, with these words |
| none of them | silence from both |

A fault that torch does not notice ends in an `assert` which holds: that is the proof.
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a page is stale")
    if parser.parse_args(arguments).check:
        stale = stale_pages()
        for name in stale:
            print(f"docs/rules/{name} is stale; run: {COMMAND}")
        return 1 if stale else 0
    write_pages()
    return 0


def pages() -> dict[str, str]:
    """The content of every file of the folder, by name."""
    return {"README.md": listing(), **{f"{rule.name}.md": page(rule) for rule in ALL}}


def page(rule: Rule) -> str:
    """The page of one rule, as it is published."""
    module = f"server/gradsight/rules/{rule.name.replace('-', '_')}.py"
    return (
        f"<!-- Written by {COMMAND} from {module}: change that file. -->\n\n"
        f"{page_markdown(rule)}\n"
        f"{appearance(rule)}"
        f"*The comments in the examples are claims that the tests prove: see [the list of rules](README.md).*\n"
    )


def appearance(rule: Rule) -> str:
    """The first example of a page as the list of problems and the command line show it, made by GradSight itself."""
    example = FIRST_EXAMPLE.search(rule.page)
    if example is None:
        return ""
    text = re.sub(r"[ \t]*#[ \t]*(?:error|warning|info|hint|raises|warns):.*", "", example.group(1))
    path = "example.py"
    report = analyze(Source(path, text), Settings(hints=True))
    own = [finding for finding in report.findings if finding.code == rule.code][:1]
    if not own:
        return ""
    documents = Documents({path: text})
    lines = ["".join(part for part, _ in line).rstrip() for line in lay_out(own[0], documents)]
    shown = "\n".join(line for line in lines if "gradsight explain" not in line)
    return f"## In your editor it looks like this\n\nThe first example, as the list of problems and `gradsight check` show it:\n\n```text\n{shown}\n```\n\n"


def listing() -> str:
    """All rules by family, with a word on how to read the examples."""
    lines = [f"<!-- Written by {COMMAND} from server/gradsight/rules/. -->", "", "# The rules", "", LEGEND]
    for prefix, family in FAMILIES.items():
        lines += [f"## {prefix} {family}", "", "| code | rule | what it finds |", "| --- | --- | --- |"]
        lines += [
            f"| {rule.code} | [{rule.name}]({rule.name}.md) | {rule.summary} |"
            for rule in sorted(ALL, key=lambda rule: rule.code)
            if rule.code.startswith(prefix)
        ]
        lines.append("")
    return "\n".join(lines)


def stale_pages() -> list[str]:
    """Names of files that are missing, differ, or belong to no rule."""
    wanted = pages()
    found = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    return sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))


def write_pages() -> None:
    """Write all pages and remove those of rules that are gone."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
