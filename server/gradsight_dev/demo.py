"""`make demo`: runs the main jobs on shipped examples, each as the command a user would type.

A stage belongs to a command; a stage whose command is not mounted is left out.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gradsight.cli.commands import mounted_commands

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Stage:
    """What is shown, the calls that show it, and the exit codes that mean it went as told."""

    title: str
    calls: tuple[str, ...]
    expected: tuple[int, ...] = (0,)

    def is_mounted(self) -> bool:
        """Whether every command of this stage exists."""
        return all(shlex.split(call)[0] in mounted_commands() for call in self.calls)


EXAMPLE = "fixtures/programs/masked_attention_weights.py"

STAGES = (
    Stage(
        "What an operator keeps for backward, measured on real torch",
        ("facts exp", "facts nn.Dropout", 'facts "Tensor.__imul__"'),
    ),
    Stage(
        "A program whose backward will fail, seen without running it", (f"check {EXAMPLE}",), expected=(1,)
    ),
    Stage("The same program, run: torch agrees", (f"run {EXAMPLE}",), expected=(1,)),
    Stage("The repair", (f"fix --diff {EXAMPLE}",), expected=(0, 1)),
)

NEXT = """
== In your editor

make vscode   opens VS Code in a browser, with the extension and a sample (installs code-server, on Linux)
make vsix     packs the extension for the VS Code you have: code --install-extension build/gradsight-*.vsix
docs/editors.md has set-ups for Neovim, Emacs, Helix, Sublime Text, Zed and Kate.

The commands above are in .venv/bin: try .venv/bin/gradsight check on a file of yours.
"""


def main() -> int:
    """Run every stage that exists, and say at the end whether all went as told."""
    stages = [stage for stage in STAGES if stage.is_mounted()]
    surprises = [call for stage in stages for call in play(stage)]
    if not stages:
        play(Stage("What there is", ("--help",)))
    print(NEXT, flush=True)
    for call in surprises:
        print(f"demo: gradsight {call} did not end as it should", file=sys.stderr)
    return 1 if surprises else 0


def play(stage: Stage) -> list[str]:
    """Show one stage; the calls that ended otherwise than expected."""
    print(f"\n== {stage.title}", flush=True)
    surprises = []
    for call in stage.calls:
        print(f"\n$ gradsight {call}", flush=True)
        command = [sys.executable, "-m", "gradsight", *shlex.split(call)]
        outcome = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONSAFEPATH": "1"}, check=False)
        if outcome.returncode not in stage.expected:
            surprises.append(call)
    return surprises


if __name__ == "__main__":
    raise SystemExit(main())
