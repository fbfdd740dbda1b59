"""Builds the manual as a web site in site/: `python -m gradsight_dev.site`.  A link that leads nowhere stops it.

The navigation of zensical.toml gets the rules added, family by family; the pages themselves are in docs/.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import subprocess
import sys
from itertools import groupby
from pathlib import Path

from gradsight.rules import ALL
from gradsight.session.pages import FAMILIES

ROOT = Path(__file__).parents[2]
CONFIGURATION = ROOT / "docs" / "zensical.toml"
# The generator looks for pages beside its configuration.
FILLED_IN = ROOT / "build" / "site" / "zensical.toml"
SITE = ROOT / "site"
HOME = "https://github.com/gradsight/gradsight/blob/main"
_LAST_ENTRY = '  { "How it thinks"'


def main() -> int:
    """Build the site; 1 with the generator's own words when something is wrong."""
    stage = FILLED_IN.parent
    shutil.rmtree(stage, ignore_errors=True)
    shutil.copytree(ROOT / "docs", stage / "docs", ignore=shutil.ignore_patterns(CONFIGURATION.name))
    for page in (stage / "docs").rglob("*.md"):
        folder = page.parent.relative_to(stage)
        page.write_text(with_home_links(page.read_text(encoding="utf-8"), folder), encoding="utf-8")
    FILLED_IN.write_text(filled_in(CONFIGURATION.read_text(encoding="utf-8")), encoding="utf-8")
    call = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(FILLED_IN)]
    done = subprocess.run(call, cwd=stage, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(re.sub(r"(?s)Traceback.*", "", done.stdout + done.stderr), file=sys.stderr)
        return 1
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.move(stage / "site", SITE)
    print(f"{len(list(SITE.rglob('*.html')))} pages in {SITE.relative_to(ROOT)}/index.html")
    return 0


def filled_in(configuration: str) -> str:
    """The configuration with the rules in its navigation."""
    if _LAST_ENTRY not in configuration:
        raise SystemExit("zensical.toml has lost the entry that the rules go before")
    return configuration.replace(_LAST_ENTRY, f'  {{ "Rules" = {rule_entries()} }},\n{_LAST_ENTRY}', 1)


def rule_entries() -> str:
    """The index of the rules, then their pages under the names of their families, as a TOML array."""
    entries = ['{ "All rules" = "rules/README.md" }']
    for family, rules in groupby(ALL, key=lambda rule: rule.code[:3]):
        pages = ", ".join(
            f'{{ {json.dumps(f"{rule.code} {rule.name}")} = "rules/{rule.name}.md" }}' for rule in rules
        )
        entries.append(f"{{ {json.dumps(FAMILIES[family])} = [{pages}] }}")
    return f"[{', '.join(entries)}]"


def with_home_links(page: str, folder: Path) -> str:
    """Links of a page in a folder of the repository to files outside docs/ lead to the repository on the web."""

    def lead(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder.as_posix(), link.group(1)))
        return link.group() if target.startswith("docs/") else f"]({HOME}/{target})"

    return re.sub(r"\]\(((?:\.\./)+[\w./-]+)\)", lead, page)


if __name__ == "__main__":
    raise SystemExit(main())
