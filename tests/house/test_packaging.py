"""What is installed and what is shipped is what the files say."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from gradsight import __version__
from gradsight_dev import pins
from tests.house.tree import ROOT, SERVER, tracked_files


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_every_installed_package_is_pinned() -> None:
    assert not pins.differences_from_environment(pins.CONSTRAINTS.read_text())


def test_what_torch_brings_for_graphics_cards_needs_no_pin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("nvidia_cublas", "cuda_bindings", "triton", "other"):
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    found = list(metadata.distributions(path=[str(tmp_path)]))
    monkeypatch.setattr(pins.metadata, "distributions", lambda: found)
    assert pins.differences_from_environment("") == ["other 1.0 is installed, constraints.txt has None"]


def test_a_pin_applies_to_the_python_versions_it_names() -> None:
    resolved = {python: {"numpy": "2.2" if python == "3.10" else "2.4"} for python in pins.PYTHONS}
    assert pins.constraint_lines(resolved) == [
        'numpy==2.2 ; python_version < "3.11"',
        'numpy==2.4 ; python_version >= "3.11"',
    ]


def test_the_wheel_ships_every_file_of_the_product_and_nothing_else(wheel: Path) -> None:
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    product = {path.relative_to(SERVER).as_posix() for path in tracked_files("server/gradsight")}
    assert shipped == product


def test_torch_is_no_dependency_of_the_product(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    metadata = archive.read(f"gradsight-{__version__}.dist-info/METADATA").decode()
    needed = [
        line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line
    ]
    assert needed
    assert not [line for line in needed if "torch" in line]


def test_the_unpacked_wheel_runs_alone(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from gradsight.cli import main; sys.exit(main())"
    )
    outcome = subprocess.run(
        [sys.executable, "-I", "-c", code, "--version"], capture_output=True, text=True, check=True
    )
    assert outcome.stdout == f"gradsight {__version__}\n"


def test_the_packing_tool_does_not_wait_for_an_answer(tmp_path: Path) -> None:
    waits = "import sys; sys.exit('asked' if sys.stdin.read() else 0)"
    script = f"from gradsight_dev.package_vsix import run_unasked; import pathlib, sys; run_unasked([sys.executable, '-c', {waits!r}], pathlib.Path('.'))"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.wait(timeout=60) == 0
