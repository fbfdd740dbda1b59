"""`gradsight completions bash|zsh|fish`: a script that lets the shell complete commands, options and rules."""

from __future__ import annotations

import argparse
import importlib
import sys

from gradsight.cli.shell import CLEAN

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("shell", choices=SHELLS, help="the shell to write for")
    parser.epilog = 'bash: eval "$(gradsight completions bash)" in ~/.bashrc'


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    sys.stdout.write({"bash": bash, "zsh": zsh, "fish": fish}[args.shell](words()))
    return CLEAN


def words() -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """Each command with its help and its long options."""
    from gradsight.cli.commands import mounted_commands

    found = {}
    for name, text in mounted_commands().items():
        parser = argparse.ArgumentParser(prog=name)
        importlib.import_module(f"gradsight.cli.{name}").add_arguments(parser)
        options = [
            (option, (action.help or "").replace("%%", "%"))
            for action in parser._actions
            for option in action.option_strings
            if option.startswith("--") and action.help is not argparse.SUPPRESS
        ]
        found[name] = (text, options)
    return found


def rules() -> list[str]:
    from gradsight.rules import ALL

    return [word for rule in ALL for word in (rule.code, rule.name)]


def bash(table: dict[str, tuple[str, list[tuple[str, str]]]]) -> str:
    cases = "\n".join(
        f"        {name}) words='{' '.join(option for option, _ in options)}' ;;"
        for name, (_, options) in table.items()
    )
    return f"""_gradsight() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" words='{" ".join(table)}'
    if [ "$COMP_CWORD" -gt 1 ]; then
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
        case "${{COMP_WORDS[COMP_CWORD - 1]}}" in
            --select | --ignore | explain) words='{" ".join(rules())}' ;;
        esac
        [[ $current == -* || $words == GS* ]] || words=
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _gradsight gradsight
"""


def zsh(table: dict[str, tuple[str, list[tuple[str, str]]]]) -> str:
    return "autoload -U +X bashcompinit && bashcompinit\n" + bash(table)


def fish(table: dict[str, tuple[str, list[tuple[str, str]]]]) -> str:
    lines = []
    for name, (text, options) in table.items():
        lines.append(f"complete -c gradsight -n __fish_use_subcommand -a {name} -d {quoted(text)}")
        lines += [
            f"complete -c gradsight -n '__fish_seen_subcommand_from {name}' -l {option[2:]} -d {quoted(said)}"
            for option, said in options
        ]
    lines.append(
        f"complete -c gradsight -n '__fish_seen_subcommand_from explain' -f -a '{' '.join(rules())}'"
    )
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
