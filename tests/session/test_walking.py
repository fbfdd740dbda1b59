"""Which files of a folder are checked."""

from __future__ import annotations

from pathlib import Path

from gradsight.session.walking import is_excluded, walk


def check(root: Path, files: dict[str, str], kept: list[str], start: str = "", exclude: tuple[str, ...] = ()) -> None:  # fmt: skip
    """Of these files, a walk from `start` finds the kept ones, in this order."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    found = [
        Path(path).relative_to(root).as_posix() for path, _ in walk(str(root / start), str(root), exclude)
    ]
    assert found == kept


def test_python_and_notebooks_are_found_in_order(tmp_path: Path) -> None:
    check(tmp_path, {"b.py": "", "a/z.ipynb": "", "a/notes.txt": "", "c.pyc": ""}, ["a/z.ipynb", "b.py"])


def test_a_nested_ignore_file_speaks_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    files = {".gitignore": "*.py\n", "a/.gitignore": "!b.py\n", "a/b.py": "", "b.py": ""}
    check(tmp_path, files, ["a/b.py"])


def test_ignore_files_above_the_named_folder_hold(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    check(
        tmp_path, {".gitignore": "gen_*.py\n", "src/gen_a.py": "", "src/b.py": ""}, ["src/b.py"], start="src"
    )


def test_an_ignored_folder_that_is_named_is_walked(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    check(tmp_path, {".gitignore": "out/\n*.tmp.py\n", "out/a.py": ""}, ["out/a.py"], start="out")


def test_an_environment_of_any_name_is_left_out(tmp_path: Path) -> None:
    check(tmp_path, {"my-env/pyvenv.cfg": "", "my-env/lib/x.py": "", "a.py": ""}, ["a.py"])


def test_a_circle_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "again").symlink_to(tmp_path, target_is_directory=True)
    check(tmp_path, {"a/b.py": ""}, ["a/b.py"])


def test_a_broken_link_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    check(tmp_path, {"a.py": ""}, ["a.py"])


def test_the_users_own_patterns_hold(tmp_path: Path) -> None:
    check(tmp_path, {"old/a.py": "", "b.py": "", "c.py": ""}, ["b.py"], exclude=("old/", "c.py"))
    assert is_excluded(str(tmp_path / "old" / "a.py"), str(tmp_path), ("old/",))
    assert not is_excluded(str(tmp_path / "b.py"), str(tmp_path), ("old/",))
