"""What the engine says about a version, and what a run of it shows: warnings and errors with their lines."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from gradsight.analysis import analyze
from gradsight.model import Settings, Source
from gradsight.probe.document import document_of
from gradsight.probe.request import ProbeRequest
from gradsight.probe.standby import Standby
from gradsight_dev.fuzz.families.script import MAIN, Version

LOUD = ("error", "warning")
TIMEOUT = 30.0


class Told(NamedTuple):
    """One warning or error."""

    severity: str
    code: str
    path: str
    first: int
    last: int
    message: str

    def __str__(self) -> str:
        return f"{self.severity} {self.code} {self.path}:{self.first} {self.message}"


Answer = Callable[[Version], list[Told]]


def by_check(version: Version) -> list[Told]:
    """What the engine says about each file."""

    def finder(module: str, level: int, importing: str) -> Source | None:
        path = f"{module}.py"
        return Source(path, version.texts[path]) if path in version.texts else None

    return [
        Told(found.severity, found.code, found.path, found.span.line, found.span.end_line, found.message)
        for path, text in version.texts.items()
        for found in analyze(Source(path, text), Settings(), finder).findings
        if found.severity in LOUD
    ]


def by_run(standby: Standby) -> Answer:
    """What a run shows, in children of one warm interpreter."""

    def answer(version: Version) -> list[Told]:
        with tempfile.TemporaryDirectory() as folder:
            for path, text in version.texts.items():
                Path(folder, path).write_text(text, encoding="utf-8")
            request = ProbeRequest(
                sys.executable, script=str(Path(folder, MAIN)), directory=folder, timeout=TIMEOUT, seed=0
            )
            faults = document_of(standby.run(request))["faults"]
        return [
            Told(
                fault["severity"],
                fault["code"],
                Path(fault["filename"]).name,
                fault["location"]["row"],
                fault.get("end_location", fault["location"])["row"],
                fault["message"],
            )
            for fault in faults
            if fault["severity"] in LOUD
        ]

    return answer
