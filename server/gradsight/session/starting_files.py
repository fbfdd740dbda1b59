"""Programs that never say torch themselves, and start modules of the workspace that do.

from agent import Agent         torch is in agent.py
if __name__ == "__main__": Agent().train()
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator

from gradsight.model.relevance import OTHER_FRAMEWORKS, is_about_torch
from gradsight.model.source import Source

STARTS = re.compile(r"__main__|^[A-Za-z_][\w.]*\(", re.MULTILINE)
"""A text that does something when it is run: what it guards for that, or a call for its own sake at its top level."""
MOST_MODULES = 24
"""How many modules are looked into, those that other ones import among them."""
Import = tuple[str, int]
Finder = Callable[[str, int, str], Source | None]


def starts_torch(source: Source, finder: Finder, models: str = "") -> bool:
    """Whether a text starts a program whose modules in the workspace have to do with torch."""
    if not STARTS.search(source.text):
        return False
    todo, seen = [source], {source.path}
    while todo and len(seen) < MOST_MODULES:
        importing = todo.pop(0)
        for module, level in imports_of(importing.text):
            found = finder(module, level, importing.path)
            if found is None or found.path in seen:
                continue
            if is_about_torch(found.text, models):
                return True
            seen.add(found.path)
            todo.append(found)
    return False


def imports_of(text: str) -> list[Import]:
    """The modules that a text may import, each with the dots in front; none of a text about another framework."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []
    found = list(dict.fromkeys(_imports(tree)))
    if any(module.partition(".")[0] in OTHER_FRAMEWORKS for module, level in found if not level):
        return []
    return found


def _imports(tree: ast.Module) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield name.name, 0
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield module, node.level
            for name in node.names:
                yield f"{module}.{name.name}".lstrip("."), node.level
