"""`gradsight completions bash|zsh|fish`: a script that lets the shell complete commands, options and rules."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import NamedTuple

from gradsight.cli.shell import CLEAN

SHELLS = ("bash", "zsh", "fish")
TAKE_RULES = ("select", "extend_select", "ignore", "extend_ignore")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("shell", choices=SHELLS, help="the shell to write for")
    parser.epilog = 'bash: eval "$(gradsight completions bash)" in ~/.bashrc'


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    sys.stdout.write({"bash": bash, "zsh": zsh, "fish": fish}[args.shell](words()))
    return CLEAN


class Option(NamedTuple):
    """A long option, what it means, and the words it takes; a path or anything else may follow where there are none."""

    name: str
    help: str
    values: list[str]
    takes_value: bool


Table = dict[str, tuple[str, list[Option]]]


def words() -> Table:
    """Each command with its help and its long options."""
    from gradsight.cli.commands import mounted_commands

    found = {}
    for name, text in mounted_commands().items():
        parser = argparse.ArgumentParser(prog=name)
        importlib.import_module(f"gradsight.cli.{name}").add_arguments(parser)
        options = [
            Option(option, (action.help or "").replace("%%", "%"), values_of(action), action.nargs != 0)
            for action in parser._actions
            for option in action.option_strings
            if option.startswith("--") and action.help is not argparse.SUPPRESS
        ]
        found[name] = (text, options)
    return found


def values_of(action: argparse.Action) -> list[str]:
    """The words that an option takes, where they are known."""
    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    return rules() if action.dest in TAKE_RULES else []


def rules() -> list[str]:
    from gradsight.rules import ALL

    return [word for rule in ALL for word in (rule.code, rule.name)]


def bash(table: Table) -> str:
    cases = "\n".join(
        f"        {name}) words='{' '.join(option.name for option in options)}' ;;"
        for name, (_, options) in table.items()
    )
    known = {
        f"{name}:{option.name}": option.values
        for name, (_, options) in table.items()
        for option in options
        if option.values
    }
    known["explain:explain"] = rules()
    values = "\n".join(
        f"            {key}) words='{' '.join(said)}' given=yes ;;" for key, said in known.items()
    )
    return f"""_gradsight() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" words='{" ".join(table)}' given=
    if [ "$COMP_CWORD" -gt 1 ]; then
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
        case "${{COMP_WORDS[1]}}:${{COMP_WORDS[COMP_CWORD - 1]}}" in
{values}
        esac
        [[ $current == -* || -n $given ]] || words=
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _gradsight gradsight
"""


def zsh(table: Table) -> str:
    """The functions that bash's form needs are there only after `compinit`, which many start files call."""
    start = "(( $+functions[compdef] )) || { autoload -U compinit && compinit -u; }"
    return f"{start}\nautoload -U +X bashcompinit && bashcompinit\n{bash(table)}"


def fish(table: Table) -> str:
    lines = []
    for name, (text, options) in table.items():
        lines.append(f"complete -c gradsight -n __fish_use_subcommand -f -a {name} -d {quoted(text)}")
        for option in options:
            line = f"complete -c gradsight -n '__fish_seen_subcommand_from {name}' -l {option.name[2:]} -d {quoted(option.help)}"
            if option.values:
                line += f" -x -a {quoted(' '.join(option.values))}"
            elif option.takes_value:
                line += " -r"
            lines.append(line)
    lines.append(
        f"complete -c gradsight -n '__fish_seen_subcommand_from explain' -f -a '{' '.join(rules())}'"
    )
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
