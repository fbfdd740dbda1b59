"""`gradsight server`: the language server, for editors."""

from __future__ import annotations

import argparse

from gradsight.cli.shell import CLEAN
from gradsight.lsp import starting


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How the server is reached, and how much it logs."""
    starting.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Serve one client; the process ends when it is gone."""
    starting.serve(args)
    return CLEAN
