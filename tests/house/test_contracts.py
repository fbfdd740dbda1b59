"""The floors hold: the contracts are kept, and each of them notices a breach."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT, SERVER, relative

LINT = "import importlinter.cli as cli; raise SystemExit(cli.lint_imports(no_cache=True, show_timings=False))"
FLOORS = "A package imports only from the floors below it"
ENGINE = "The engine stands in floors"
BREACHES = [
    ("model/source.py", "import gradsight.ops", FLOORS),
    ("ops/fact.py", "import gradsight.interp", FLOORS),
    ("interp/__init__.py", "import gradsight.session", FLOORS),
    ("session/__init__.py", "import gradsight.lsp", FLOORS),
    ("cli/shell.py", "import gradsight.lsp", FLOORS),
    ("agent/__init__.py", "import gradsight.model", FLOORS),
    ("interp/python/loops.py", "import gradsight.interp.tensors.shapes", ENGINE),
    ("interp/tensors/shapes.py", "import gradsight.interp.libraries.library", ENGINE),
    ("interp/libraries/library.py", "import gradsight.interp.paths.entries", ENGINE),
    ("interp/path_state.py", "import gradsight.interp.python.loops", ENGINE),
    ("interp/tensors/shapes.py", "import ast", "The tensor world does not read the source"),
    ("interp/__init__.py", "def late() -> None:\n    import torch", "torch has one door: the agent"),
    ("lsp/__init__.py", "import libcst", "libcst has one door: fixes"),
    ("cli/shell.py", "from lsprotocol import types", "pygls and lsprotocol have one door: lsp"),
    ("agent/__init__.py", "import rich", "The agent runs in the user's interpreter"),
    ("probe/__init__.py", "import gradsight_dev", "The product does not import its workshop"),
]


def test_every_contract_is_kept() -> None:
    outcome = lint(ROOT)
    assert outcome.returncode == 0, outcome.stdout


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the contracts tell of a copy with all breaches in it."""
    copy = copied(tmp_path_factory.mktemp("breaches"))
    for module, line, _ in BREACHES:
        broken = copy / "server" / "gradsight" / module
        broken.write_text(f"{broken.read_text()}\n{line}\n")
    outcome = lint(copy)
    assert outcome.returncode == 1
    return outcome.stdout


@pytest.mark.parametrize(("module", "line", "contract"), BREACHES)
def test_a_breach_is_noticed(told: str, module: str, line: str, contract: str) -> None:
    importer = f"gradsight.{module.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"
    imported = line.split()[-3 if "from " in line else -1]
    titled = re.split(r"\n(\S.*)\n-{9,}\n", told.split("Broken contracts")[-1])
    [explained] = [text for title, text in zip(titled[1::2], titled[2::2]) if title.startswith(contract)]
    assert f"{importer} -> {imported} (l." in explained


def test_a_new_room_must_be_given_a_floor(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    (copy / "server" / "gradsight" / "attic.py").write_text('"""A package without a floor."""\n')
    outcome = lint(copy)
    assert outcome.returncode == 1
    assert "gradsight.attic" in outcome.stdout


def test_the_agent_imports_the_standard_library_and_torch_alone() -> None:
    allowed = {*sys.stdlib_module_names, "torch", "torchgen"}
    strangers = [
        f"{relative(path)}: {name}"
        for path in sorted((SERVER / "gradsight" / "agent").rglob("*.py"))
        for name in needed_imports(path)
        if name.split(".")[0] not in allowed and not name.startswith("gradsight.agent")
    ]
    assert not strangers


def test_models_of_libraries_import_nothing_of_ours() -> None:
    """They are text for the machine: no package of the product, and nothing in them is ever imported."""
    models = SERVER / "gradsight" / "models"
    assert not (models / "__init__.py").exists()
    assert not [
        f"{relative(path)}: {name}"
        for path in sorted(models.rglob("*.py"))
        for name in needed_imports(path)
        if name.split(".")[0] in ("gradsight", "gradsight_dev")
    ]


def test_the_agent_is_written_in_the_python_of_its_oldest_interpreter() -> None:
    for path in sorted((SERVER / "gradsight" / "agent").rglob("*.py")):
        ast.parse(path.read_text(), filename=str(path), feature_version=(3, 9))


def copied(folder: Path) -> Path:
    """A copy of the sources with their contracts."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copytree(SERVER, folder / "server", ignore=shutil.ignore_patterns("__pycache__", "*.json*"))
    return folder


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the contracts of this folder's pyproject.toml on this folder's sources."""
    return subprocess.run(
        [sys.executable, "-c", LINT],
        cwd=folder,
        env={"PYTHONPATH": str(folder / "server"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )


def needed_imports(path: Path) -> list[str]:
    """Absolute names of the modules a file imports anywhere, those left out that it can do without."""
    tree = ast.parse(path.read_text())
    optional = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.Try) and any(catches_import_error(handler) for handler in block.handlers)
        for statement in block.body
        for node in ast.walk(statement)
    }
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and id(node) not in optional:
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and id(node) not in optional:
            names.append(node.module or "")
    return names


def catches_import_error(handler: ast.ExceptHandler) -> bool:
    """Whether a missing module ends in this handler."""
    return handler.type is not None and "ImportError" in ast.unparse(handler.type)
