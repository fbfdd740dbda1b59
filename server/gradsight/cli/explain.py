"""`gradsight explain GS101`: print the manual page of a rule."""

from __future__ import annotations

import argparse
import os
import sys

from gradsight.cli.shell import CLEAN, fail
from gradsight.rules import ALL, find
from gradsight.session.configuration import nearest_of
from gradsight.session.pages import page_markdown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "rules", nargs="+", metavar="RULE", help="a code or a name, such as GS101 or inplace-on-saved"
    )


def run(args: argparse.Namespace) -> int:
    """Print the pages in the order in which they were asked for."""
    pages = []
    for word in args.rules:
        rule = find(word)
        if rule is None:
            return fail(unknown_rule(word))
        pages.append(page_markdown(rule))
    text = "\n".join(pages)
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        sys.stdout.write(text)
    return CLEAN


def unknown_rule(word: str) -> str:
    """Say what was not found and what is nearest to it."""
    known = {name.lower(): name for rule in ALL for name in (rule.code, rule.name)}
    nearest = nearest_of(word.strip().lower(), list(known), wanted=3, cutoff=0.5)
    hint = (
        f"did you mean {' or '.join(known[name] for name in nearest)}?" if nearest else "see: gradsight rules"
    )
    return f"no rule has the code or name '{word}': {hint}"
