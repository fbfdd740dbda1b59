"""The list of generated files: what writes each one, and which command a person types for it.

A generator is a module of this package that writes its file when run, and with `--check` only says whether the file is
fresh (exit code 0) or not (1).  `python -m gradsight_dev.generated` runs them all; `--check` checks them all.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Generated:
    """A committed path, the module that writes it, and the command that runs that module."""

    path: str
    module: str
    command: str

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the generator in this interpreter."""
        call = [sys.executable, "-m", self.module, *arguments]
        return subprocess.run(call, capture_output=True, text=True, check=False)


ALL = (
    Generated("constraints.txt", "gradsight_dev.pins", "make pins"),
    Generated("package.json", "gradsight_dev.settings_schema", "make settings"),
    Generated("docs/settings.md", "gradsight_dev.settings_schema", "make settings"),
    Generated(
        "docs/libraries.md", "gradsight_dev.library_page", ".venv/bin/python -m gradsight_dev.library_page"
    ),
    Generated(
        "docs/public-code.md", "gradsight_dev.public_code", ".venv/bin/python -m gradsight_dev.public_code"
    ),
    Generated("docs/rules", "gradsight_dev.rule_pages", ".venv/bin/python -m gradsight_dev.rule_pages"),
)


def main() -> int:
    """Write or check every generated file; 1 if one of them is stale or its generator failed."""
    arguments = sys.argv[1:]
    failures = 0
    for generated in ALL:
        outcome = generated.run(*arguments)
        failures += outcome.returncode != 0
        verdict = "ok" if outcome.returncode == 0 else f"failed, see: {generated.command}"
        print(f"{generated.path}: {verdict}")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
