"""SARIF 2.1.0: the log around results, and the places in it, for whoever has results to tell."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gradsight import __version__

LEVELS = {"error": "error", "warning": "warning", "info": "note", "hint": "note"}
HOME = "https://github.com/gradsight/gradsight"
BASE = "SRCROOT"
Part = dict[str, Any]


def log_of(rules: Sequence[Part], results: Sequence[Part], invocation: Part) -> Part:
    """A log with one run."""
    driver = {
        "name": "gradsight",
        "semanticVersion": __version__,
        "informationUri": HOME,
        "rules": list(rules),
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {BASE: {"uri": Path(os.getcwd()).as_uri() + "/"}},
        "invocations": [invocation],
        "results": list(results),
    }
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


def location(path: str, region: Part) -> Part:
    """A region of a file."""
    return {"physicalLocation": {"artifactLocation": artifact(path), "region": region}}


def region(line: int, column: int, end_line: int, end_column: int) -> Part:
    """A range whose lines and columns start at 1."""
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def artifact(path: str) -> Part:
    """A file: relative to the working folder where it lies below it.  Bytes that are no text are percent-encoded."""
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    if relative.startswith(".."):
        return {"uri": Path(path).as_uri()}
    return {"uri": quote(os.fsencode(Path(relative).as_posix())), "uriBaseId": BASE}


def trail(steps: Sequence[Part]) -> Part:
    """What leads to a result: related places, each with its message, and the same as a flow through the program."""
    if not steps:
        return {}
    flow = [{"location": dict(step)} for step in steps]
    return {
        "relatedLocations": [{"id": number, **step} for number, step in enumerate(steps, 1)],
        "codeFlows": [{"threadFlows": [{"locations": flow}]}],
    }


def message(text: str) -> Mapping[str, str]:
    """A text of a log."""
    return {"text": text}
