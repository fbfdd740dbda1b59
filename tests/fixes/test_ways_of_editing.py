"""What restructures a statement goes through libcst; offsets serve for what is put in, taken out or put in the place of a whole.

Looked at in every candidate for the findings of all hazards of the fixtures and the rule pages: a patch that libcst did not make
may insert, may change one expression, and may take a whole statement away or write a whole one in its place.  What changes a part
of a statement beyond one expression, as `x *= a` becomes `x = x * a`, has brackets, line continuations and comments to mind.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

import libcst
import pytest

from gradsight.analysis import analyze
from gradsight.fixes import calls, lines
from gradsight.fixes.draft import FixCase
from gradsight.fixes.tree import Patch, Tree
from gradsight.fixing import BUILDERS
from gradsight.model.source import Source
from gradsight_dev.fuzz_fixes import seeds

FEWEST = 5
"""So many kinds of repairs at least restructure a statement: fewer would mean that nothing was looked at."""


def test_what_restructures_a_statement_goes_through_libcst(monkeypatch: pytest.MonkeyPatch) -> None:
    by_libcst: list[Patch] = []
    monkeypatch.setattr(calls, "trimmed", noting(calls.trimmed, by_libcst))
    monkeypatch.setattr(lines, "difference", noting(lines.difference, by_libcst))
    by_offsets: set[str] = set()
    restructuring: set[str] = set()
    for seed in seeds():
        for kind, tree, patch in candidates(seed.hazard):
            if patch in by_libcst:
                restructuring.add(kind)
            elif not is_plain(tree, patch):
                by_offsets.add(f"{kind}: {tree.text[patch.start : patch.end]!r} becomes {patch.text!r}")
        by_libcst.clear()
    assert not by_offsets
    assert len(restructuring) >= FEWEST


def test_libcst_reads_the_statement_alone_however_long_the_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """It parses a thousand lines in 40 ms; a fix of one line must not cost that."""
    read: list[int] = []
    for name in ("parse_module", "parse_statement", "parse_expression"):
        monkeypatch.setattr(libcst, name, measuring(getattr(libcst, name), read))
    padding = "".join(f"value_{number} = {number}\n" for number in range(300))
    most = {False: 0, True: 0}
    for seed in list(seeds())[::12]:
        for is_long in most:
            read.clear()
            candidates(seed.hazard + padding * is_long)
            most[is_long] = max(most[is_long], sum(read))
    assert 0 < most[True] == most[False]


@pytest.mark.parametrize(
    ("text", "gone", "come"),
    [
        ("x *= a\n", "*=", "= x *"),
        ("x *= a\n", "x *= ", "x = x * "),
        ("opt.lr = 0.1\n", " = 0.1", "(0.1)"),
        ("with no_grad():\n    y = x\n", "with no_grad():\n    ", ""),
        ("return x\n", "return ", "y = "),
    ],
)
def test_a_statement_that_is_changed_by_offsets_is_noticed(text: str, gone: str, come: str) -> None:
    assert not is_plain(*patch_of(text, gone, come))


@pytest.mark.parametrize(
    ("text", "gone", "come"),
    [
        ("y = x\n", "", "import torch\n"),
        ("y = x.mul_(a)\n", "_", ""),
        ("y = float(x)\n", "float(x)", "x"),
        ("f(x, out=y)\n", "out=y", "dtype=y.dtype"),
        ("y = x\nz = y\n", "y = x\n", ""),
        ("y = x  # read\nz = y\n", "y = x  # read\n", ""),
        ("if a:\n    y = x\n", "    y = x", "y = f(x)"),
        ("@torch.no_grad()\ndef f(x):\n    return x\n", "@torch.no_grad()\n", ""),
    ],
)
def test_what_is_put_in_or_taken_out_may_go_by_offsets(text: str, gone: str, come: str) -> None:
    assert is_plain(*patch_of(text, gone, come))


def measuring(parse: Callable[..., object], read: list[int]) -> Callable[..., object]:
    """The same function, which notes how much it is given."""

    def measured(text: str, *given: object, **named: object) -> object:
        read.append(len(text))
        return parse(text, *given, **named)

    return measured


def noting(
    make: Callable[..., Patch | tuple[Patch, ...]], made: list[Patch]
) -> Callable[..., Patch | tuple[Patch, ...]]:
    """The same function, which notes the patches that it makes."""

    def noted(*given: object) -> Patch | tuple[Patch, ...]:
        found = make(*given)
        made.extend([found] if isinstance(found, Patch) else found)
        return found

    return noted


def candidates(text: str) -> list[tuple[str, Tree, Patch]]:
    """The patches of every candidate for the findings of a text, with the kind of repair."""
    tree, findings = Tree.parse(text), analyze(Source("hazard.py", text)).findings
    assert tree is not None
    found = []
    for finding in findings:
        build, node = BUILDERS.get(finding.code), tree.node_at(finding.span)
        statement = tree.statement(node)
        if build is not None and node is not None and statement is not None:
            for draft in build(FixCase(tree, finding, node, statement, findings)):
                found += [(draft.kind, tree, patch) for patch in draft.patches]
    return found


def is_plain(tree: Tree, patch: Patch) -> bool:
    """Whether a patch only inserts, stays in one expression or argument, or covers whole statements or decorators."""
    if patch.start == patch.end:
        return True
    nodes = [node for node in ast.walk(tree.module) if hasattr(node, "lineno")]
    parts = [node for node in nodes if isinstance(node, (ast.expr, ast.keyword))]
    if any(tree.start(part) <= patch.start and patch.end <= tree.end(part) for part in parts):
        return True
    start = patch.end - len(tree.text[patch.start : patch.end].lstrip())
    wholes = [(tree.start(node), tree.end(node)) for node in nodes if isinstance(node, ast.stmt)]
    for node in nodes:
        wholes += [(tree.start(one) - 1, tree.end(one)) for one in getattr(node, "decorator_list", ())]
    rests = [
        tree.text[last : patch.end].strip() for first, last in wholes if first == start and last <= patch.end
    ]
    return any(not rest or (rest.startswith("#") and "\n" not in rest) for rest in rests)


def patch_of(text: str, gone: str, come: str) -> tuple[Tree, Patch]:
    tree = Tree.parse(text)
    assert tree is not None
    return tree, Patch(text.index(gone), text.index(gone) + len(gone), come)
