"""Imports inside the workspace: what is found, and what is left alone."""

from __future__ import annotations

from pathlib import Path

from gradsight.session.reading import reader
from gradsight.session.workspace import WorkspaceFinder, project_root


def check(root: Path, module: str, level: int, importing: str, found: str | None) -> None:
    """This import, written in this file, leads to this file."""
    source = WorkspaceFinder(str(root), reader())(module, level, str(root / importing))
    assert (Path(source.path).relative_to(root).as_posix() if source else None) == found


def lay_out(root: Path, *files: str) -> None:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"name = {name!r}\n")


def test_a_neighbour_is_found_by_its_name(tmp_path: Path) -> None:
    lay_out(tmp_path, "scripts/net.py", "scripts/train.py")
    check(tmp_path, "net", 0, "scripts/train.py", "scripts/net.py")


def test_a_package_is_found_from_the_root_and_from_src(tmp_path: Path) -> None:
    lay_out(tmp_path, "lib/__init__.py", "lib/net.py", "src/core/__init__.py", "scripts/train.py")
    check(tmp_path, "lib.net", 0, "scripts/train.py", "lib/net.py")
    check(tmp_path, "core", 0, "scripts/train.py", "src/core/__init__.py")


def test_relative_imports_go_up_level_by_level(tmp_path: Path) -> None:
    lay_out(tmp_path, "lib/__init__.py", "lib/net.py", "lib/inner/__init__.py", "lib/inner/block.py")
    check(tmp_path, "", 1, "lib/net.py", "lib/__init__.py")
    check(tmp_path, "inner.block", 1, "lib/net.py", "lib/inner/block.py")
    check(tmp_path, "net", 2, "lib/inner/block.py", "lib/net.py")


def test_nothing_above_the_root_is_read(tmp_path: Path) -> None:
    lay_out(tmp_path, "secret.py", "project/lib/__init__.py", "project/lib/net.py")
    source = WorkspaceFinder(str(tmp_path / "project"), reader())(
        "secret", 3, str(tmp_path / "project/lib/net.py")
    )
    assert source is None


def test_torch_is_known_by_facts_and_never_handed_in(tmp_path: Path) -> None:
    lay_out(tmp_path, "torch/__init__.py", "torch/nn/__init__.py", "torch/nn/functional.py", "train.py")
    check(tmp_path, "torch.nn", 0, "train.py", None)
    check(tmp_path, "functional", 1, "torch/nn/__init__.py", None)


def test_an_installed_package_sees_itself_and_not_its_neighbours(tmp_path: Path) -> None:
    lay_out(tmp_path, "site-packages/timm/__init__.py", "site-packages/timm/net.py", "site-packages/numpy.py")
    check(tmp_path, "timm.net", 0, "site-packages/timm/__init__.py", "site-packages/timm/net.py")
    check(tmp_path, "numpy", 0, "site-packages/timm/__init__.py", None)


def test_a_file_is_read_once(tmp_path: Path) -> None:
    lay_out(tmp_path, "net.py")
    read = reader()
    first = read(str(tmp_path / "net.py"))
    (tmp_path / "net.py").write_text("changed = True\n")
    assert read(str(tmp_path / "net.py")) is first


def test_the_project_is_the_nearest_folder_with_a_mark_of_one(tmp_path: Path) -> None:
    lay_out(tmp_path, "app/lib/net.py", "app/pyproject.toml")
    assert project_root(str(tmp_path / "app/lib/net.py")) == str(tmp_path / "app")
