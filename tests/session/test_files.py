"""Files are read as the editor shows them, and read again when they change."""

from __future__ import annotations

from pathlib import Path

from gradsight.model.source import Source
from gradsight.session.files import Files
from gradsight.session.workspace import WorkspaceFinder


def test_what_is_open_counts_before_what_lies_on_disk(tmp_path: Path) -> None:
    files, finder, path = project(tmp_path, "on disk")
    files.open_sources = {path: Source(path, "on screen")}
    found = finder("helper", 0, str(tmp_path / "main.py"))
    assert found is not None
    assert found.text == "on screen"


def test_a_change_is_seen_after_it_was_told(tmp_path: Path) -> None:
    files, _, path = project(tmp_path, "old")
    assert text_of(files, tmp_path) == "old"
    Path(path).write_text("new")
    assert files.changed_on_disk() == {path}
    files.forget([path])
    assert files.changed_on_disk() == set()
    assert text_of(files, tmp_path) == "new"


def test_a_file_that_was_looked_for_in_vain_is_remembered_too(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    files = Files()
    assert text_of(files, tmp_path) is None
    (tmp_path / "helper.py").write_text("here now")
    assert str(tmp_path / "helper.py") in files.changed_on_disk()


def test_settings_follow_the_nearest_project_file(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.gradsight]\nignore = ['GS1']\n")
    files = Files()
    assert files.configuration_for(str(inner / "a.py")).settings.ignore == ("GS1",)
    nearer = inner / "pyproject.toml"
    nearer.write_text("[tool.gradsight]\nignore = ['GS2']\n")
    assert files.changed_on_disk() == {str(nearer)}
    files.forget([str(nearer)])
    assert files.configuration_for(str(inner / "a.py")).settings.ignore == ("GS2",)


def test_a_text_that_lives_nowhere_imports_nothing() -> None:
    assert Files().finder_for("untitled:Untitled-1") is None


def project(folder: Path, text: str) -> tuple[Files, WorkspaceFinder, str]:
    """A project with one module, and who finds it."""
    (folder / "pyproject.toml").write_text("")
    path = folder / "helper.py"
    path.write_text(text)
    files = Files()
    finder = files.finder_for(str(folder / "main.py"))
    assert finder is not None
    return files, finder, str(path)


def text_of(files: Files, folder: Path) -> str | None:
    finder = files.finder_for(str(folder / "main.py"))
    assert finder is not None
    found = finder("helper", 0, str(folder / "main.py"))
    return found.text if found is not None else None
