"""`gradsight rules`: list the rules by family."""

from __future__ import annotations

import argparse
import json
import sys

from gradsight.cli.shell import CLEAN
from gradsight.rules import ALL
from gradsight.session.pages import FAMILIES, page_url


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "--format", choices=("json", "text"), default="text", help="how rules are written (text)"
    )


def run(args: argparse.Namespace) -> int:
    """Print code, name and summary of every rule."""
    if args.format == "json":
        listing = [
            {"code": rule.code, "name": rule.name, "summary": rule.summary, "url": page_url(rule.name)}
            for rule in ALL
        ]
        json.dump(listing, sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
        return CLEAN
    width = max(len(rule.name) for rule in ALL)
    family = ""
    for rule in sorted(ALL, key=lambda rule: rule.code):
        if rule.code[:3] != family:
            sys.stdout.write(f"{'' if not family else chr(10)}{FAMILIES[rule.code[:3]]}\n")
            family = rule.code[:3]
        sys.stdout.write(f"  {rule.code}  {rule.name:<{width}}  {rule.summary}\n")
    return CLEAN
