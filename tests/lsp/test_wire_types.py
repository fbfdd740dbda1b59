"""The types of the protocol, built when they are first used, are those that lsprotocol declares."""

from __future__ import annotations

import json
import subprocess
import sys

LIST = """
import json, sys
if sys.argv[1] == "ours":
    from gradsight.lsp.wire_types import types
else:
    from lsprotocol import types
import attrs
shapes = {}
for name, cls in sorted(types.ALL_TYPES_MAP.items()):
    if isinstance(cls, type) and attrs.has(cls):
        attrs.resolve_types(cls, types.ALL_TYPES_MAP, {})
        shapes[name] = [[field.name, str(field.type), repr(field.default)] for field in attrs.fields(cls)]
print(json.dumps(shapes))
"""
IMPORTED = """
import sys
from gradsight.lsp.server import GradSightServer
from gradsight.lsp.wire_types import types, _Unbuilt
GradSightServer()
waiting = [cls for cls in types.ALL_TYPES_MAP.values() if isinstance(getattr(cls, "__dict__", {}).get("__attrs_attrs__"), _Unbuilt)]
print(len(waiting), *sorted(name for name in sys.modules if name.split(".")[0] in ("gradsight", "libcst", "rich", "torch")))
"""


def test_every_class_has_the_fields_that_lsprotocol_declares() -> None:
    ours, theirs = json.loads(run(LIST, "ours")), json.loads(run(LIST, "theirs"))
    assert len(theirs) > 500
    assert ours == theirs


def test_a_server_starts_with_most_classes_unbuilt_and_the_engine_not_loaded() -> None:
    count, *modules = run(IMPORTED).split()
    assert int(count) > 450
    heavy = (
        "gradsight.interp",
        "gradsight.rules",
        "gradsight.analysis",
        "gradsight.fixes",
        "libcst",
        "rich",
        "torch",
    )
    assert [name for name in modules if name.startswith(heavy)] == []


def test_values_compare_and_print_as_usual() -> None:
    from gradsight.lsp.wire_types import types

    first, second = types.Position(1, 2), types.Position(1, 2)
    assert first == second
    assert first < types.Position(1, 3)
    assert types.Range(first, second) == types.Range(second, first)
    assert "kind" in repr(types.MarkupContent(types.MarkupKind.Markdown, "x"))


def run(code: str, *arguments: str) -> str:
    outcome = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout
