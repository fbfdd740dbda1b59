"""Nothing is kept that nobody asks for: every name that the product declares is spelled a second time somewhere."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.house.tree import relative, tracked_files

CALLED_BY_PREFIX = re.compile(r"on_|method_|builtin_|module_|visit_|pytest_|lsp_|__")
"""Names that are put together where they are looked up: by facts, by what a program calls, by `ast` and by vendors."""
CALLED_BY_VENDORS = {
    "_repr_html_": "IPython shows it",
    "_should_skip_dynamo": "torch's dispatch asks it",
    "device_count": "stands in torch.cuda",
    "dont_write_bytecode": "a field of sys",
    "get_code": "the import system calls it",
    "is_current_stream_capturing": "stands in torch.cuda",
    "report_server_error": "pygls calls it",
    "supports_higher_order_operators": "torch's dispatch asks it",
}
LIBRARY_MODELS = "server/gradsight/models/"


def test_every_name_of_the_product_is_asked_for() -> None:
    assert unasked(texts()) == set(CALLED_BY_VENDORS)


def test_a_name_that_nobody_asks_for_is_noticed() -> None:
    text = "def used(): ...\ndef unused(): ...\nclass Kept:\n    idle: int = 1\n    def on_wrote(self): return used(Kept)\nLEFT = 1\n"
    assert unasked({"server/gradsight/one.py": text}) == {"unused", "idle", "LEFT"}


def texts() -> dict[str, str]:
    """Every text of the repository that can ask for a name, by its path."""
    found: dict[str, str] = {}
    for path in tracked_files(
        "server", "tests", "benchmarks", "client/src", "docs", "*.json", "*.toml", "Makefile"
    ):
        if path.suffix in (".py", ".ts", ".md", ".mjs", ".json", ".toml", "") and path != Path(__file__):
            found[relative(path)] = path.read_text(encoding="utf-8")
    return found


def unasked(found: dict[str, str]) -> set[str]:
    """The names that are declared in the product and spelled nowhere else."""
    spelled = Counter(word for text in found.values() for word in re.findall(r"\w+", text))
    return {
        name
        for path, text in found.items()
        if path.startswith("server/") and path.endswith(".py") and not path.startswith(LIBRARY_MODELS)
        for name in declared(ast.parse(text))
        if spelled[name] == 1 and not CALLED_BY_PREFIX.match(name)
    }


def declared(tree: ast.AST) -> Iterator[str]:
    """The functions, classes, constants and attributes that a text declares."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from bound_in(target)
        elif isinstance(node, ast.AnnAssign):
            yield from bound_in(node.target)


def bound_in(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and node.id != "_":
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
