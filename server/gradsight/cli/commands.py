"""One table of commands, each a module of this package that is imported only when it is called.

A command module `gradsight.cli.<name>` offers `add_arguments(parser)` and `run(args) -> int`.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import re
from typing import NoReturn

from gradsight import __version__
from gradsight.cli.shell import CLEAN, FAILED, complain, fail

COMMANDS = (
    ("check", "find the places where gradients break"),
    ("fix", "apply the safe fixes"),
    ("run", "run a script and report what torch did to its gradients"),
    ("prove", "run minimal programs around the findings of a file and report what torch did"),
    ("explain", "print the manual page of a rule"),
    ("rules", "list the rules"),
    ("facts", "show what is known about a torch operator"),
    ("completions", "print a script that completes commands and options in a shell"),
    ("server", "speak the language server protocol to an editor"),
)


def dispatch(argv: list[str]) -> int:
    """Choose the command, let its module describe its arguments, and run it."""
    mounted = mounted_commands()
    name = argv[0] if argv and not argv[0].startswith("-") else ""
    if name and name not in mounted:
        return fail(unknown_command(name, mounted))
    parser = Parser(
        prog="gradsight", description="Finds broken gradients in PyTorch code.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"gradsight {__version__}")
    choices = parser.add_subparsers(metavar="command")
    parsers = {
        command: choices.add_parser(command, help=text, description=text, allow_abbrev=False)
        for command, text in mounted.items()
    }
    if not argv:
        parser.print_help()
        return FAILED
    if not name:
        refuse_or_answer(parser, argv)
        return CLEAN
    module = importlib.import_module(f"gradsight.cli.{name}")
    module.add_arguments(parsers[name])
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        # Said by the command itself, whose options are meant.
        parsers[name].error(f"unrecognized arguments: {' '.join(unknown)}")
    return int(module.run(args))


class Parser(argparse.ArgumentParser):
    """Says in one line what was not understood, and where the options are listed."""

    def error(self, message: str) -> NoReturn:
        """End the command as a wrong call; a misspelt option is answered with the one that is meant."""
        found = re.search(r"unrecognized arguments: (-\S+)", message)
        if found is not None:
            from difflib import get_close_matches

            own = list(self._option_string_actions)
            near = get_close_matches(found.group(1).split("=")[0], own, n=1)
            message = f"no option {found.group(1)}{f': did you mean {near[0]}?' if near else ''}"
        refused = re.search(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", message)
        if refused is not None:
            from difflib import get_close_matches

            option, given, choices = (
                refused[1].partition("/")[0],
                refused[2],
                re.findall(r"[\w-]+", refused[3]),
            )
            near = get_close_matches(given, choices, n=1)
            hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(choices)}"
            message = f"{option} cannot be '{given}': {hint}"
        complain(f"{message} (options: {self.prog} --help)")
        self.exit(FAILED)


def mounted_commands() -> dict[str, str]:
    """The commands whose module is installed, with their one-line help; no command is imported to find out."""
    return {name: text for name, text in COMMANDS if importlib.util.find_spec(f"gradsight.cli.{name}")}


def unknown_command(name: str, mounted: dict[str, str]) -> str:
    """Say what was not understood and what is nearest to it."""
    from difflib import get_close_matches

    nearest = get_close_matches(name, mounted, n=1)
    hint = f"did you mean '{nearest[0]}'?" if nearest else f"choose from {', '.join(mounted)}"
    return f"no command '{name}': {hint}"


def refuse_or_answer(parser: argparse.ArgumentParser, argv: list[str]) -> NoReturn:
    """Answer `--help` and `--version`; any other option needs a command first."""
    parser.parse_known_args(argv[:1])
    parser.error(f"a command comes first, before {argv[0]}")
