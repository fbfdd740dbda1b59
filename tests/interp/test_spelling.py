"""Findings do not depend on how torch is spelled: every import of every fixture is renamed, and the same is said."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source

pytestmark = pytest.mark.facts

FIXTURES = Path(__file__).parents[2] / "fixtures"
FOLDERS = sorted({path.parent for path in FIXTURES.rglob("*.py")})
SPELLINGS = {
    "import torch": ("torch", "import torch as th", "th"),
    "from torch import nn": ("nn", "from torch import nn as tnn", "tnn"),
    "import torch.nn as nn": ("nn", "import torch.nn as tnn", "tnn"),
    "import torch.nn.functional as F": ("F", "import torch.nn.functional as functions", "functions"),
    "from torch.nn import functional as F": (
        "F",
        "from torch.nn import functional as functions",
        "functions",
    ),
}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(FIXTURES).as_posix())
def test_an_alias_of_an_import_changes_nothing(folder: Path) -> None:
    compare(folder, with_aliases)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(FIXTURES).as_posix())
def test_functions_imported_by_name_change_nothing(folder: Path) -> None:
    compare(folder, with_names)


def compare(folder: Path, spelled: object) -> None:
    changed = 0
    for path in sorted(folder.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        other = spelled(text)  # type: ignore[operator]
        if other != text:
            changed += 1
            assert told(path, other) == told(path, text), f"{path.name} spelled in another way"
    assert changed or not any("torch" in path.read_text("utf-8") for path in folder.glob("*.py"))


def told(path: Path, text: str) -> list[tuple[str, str, int]]:
    findings = analyze(Source(str(path), text)).findings
    return sorted((finding.code, finding.severity, finding.span.line) for finding in findings)


def with_aliases(text: str) -> str:
    """`import torch as th`, and `th` wherever `torch` stood."""
    whole = {line for line in text.splitlines() if line.startswith(("import ", "from "))}
    for line in sorted(whole & SPELLINGS.keys()):
        name, replaced, alias = SPELLINGS[line]
        if name == "torch" and any(re.match(r"import torch\.\S+$", other) for other in whole):
            # `import torch.utils.data` binds the name as well.
            continue
        lines = text.split("\n")
        places = {
            (node.lineno, node.col_offset)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Name) and node.id == name
        }
        for row, column in sorted(places, reverse=True):
            lines[row - 1] = spliced(lines[row - 1], column, len(name), alias)
        text = "\n".join(replaced if other == line else other for other in lines)
    return text


def with_names(text: str) -> str:
    """`from torch import exp`, and `exp(...)` wherever `torch.exp(...)` stood."""
    if "import torch" not in text.splitlines():
        return text
    tree = ast.parse(text)
    taken = {*dir(builtins), *names_in(tree)}
    lines, imported = text.split("\n"), set()
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    functions = [
        function
        for function in calls
        if isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "torch"
        and function.attr not in taken
        and function.lineno == function.end_lineno
    ]
    for function in sorted(functions, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        width = (function.end_col_offset or 0) - function.col_offset
        row = function.lineno - 1
        lines[row] = spliced(lines[row], function.col_offset, width, function.attr)
        imported.add(function.attr)
    if imported:
        row = lines.index("import torch")
        lines[row] = f"import torch; from torch import {', '.join(sorted(imported))}"
    return "\n".join(lines)


def names_in(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {alias.asname or alias.name for alias in node.names}
    return found


def spliced(line: str, column: int, width: int, new: str) -> str:
    """Columns of `ast` count bytes."""
    raw = line.encode()
    return (raw[:column] + new.encode() + raw[column + width :]).decode()
