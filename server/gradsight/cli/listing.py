"""What `check` would do, instead of doing it: `--show-files` and `--show-settings`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TextIO

from gradsight.cli.checking import Task
from gradsight.model.settings import DERIVED
from gradsight.session.shown_paths import shown_path


def write_files(tasks: Sequence[Task], out: TextIO) -> None:
    """The files that would be checked, one on a line."""
    out.writelines(f"{shown_path(task.path)}\n" for task in tasks)


def write_settings(tasks: Sequence[Task], configurations: Sequence[str], out: TextIO) -> None:
    """The settings of each project among the files, and where they come from."""
    for path in configurations:
        out.write(f"# from {shown_path(path)}\n")
    shown: list[str] = []
    for task in tasks:
        text = "".join(
            f"{name.replace('_', '-')} = {json.dumps(value)}\n"
            for name, value in sorted(asdict(task.settings).items())
            if name not in DERIVED
        )
        if text not in shown:
            shown.append(text)
            out.write(text if len(shown) == 1 else f"\n# {shown_path(task.path)}\n{text}")
