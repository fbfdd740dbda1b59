"""The packed extension: what is in it, and that its server survives whatever the user's environment holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from gradsight import __version__
from gradsight_dev import package_vsix
from gradsight_dev.package_vsix import ABIS, COMPILED, LARGEST, TARGETS
from tests.client_e2e.packing import packed
from tests.house.tree import ROOT
from tests.lsp.editor import Editor
from tests.lsp.programs import HAZARD

pytestmark = pytest.mark.packed

MOST_LINES = 1300


@pytest.fixture(scope="session")
def vsix() -> Path:
    """The .vsix for this kind of machine, packed anew."""
    return packed()


@pytest.fixture(scope="session")
def extension(vsix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension as an editor unpacks it."""
    folder = tmp_path_factory.mktemp("vsix")
    with zipfile.ZipFile(vsix) as archive:
        archive.extractall(folder)
    return folder / "extension"


def test_it_is_small(vsix: Path) -> None:
    assert vsix.stat().st_size < LARGEST == 20_000_000


def test_what_another_platform_could_not_use_is_refused(vsix: Path, tmp_path: Path) -> None:
    package_vsix.validate(vsix, TARGETS["linux-x64"])
    with pytest.raises(SystemExit, match=r"native\.cpython-310-darwin\.so"):
        package_vsix.validate(vsix, TARGETS["darwin-x64"])
    without = tmp_path / "without.vsix"
    with zipfile.ZipFile(vsix) as whole, zipfile.ZipFile(without, "w") as part:
        for name in whole.namelist():
            if "launch.py" not in name:
                part.writestr(name, whole.read(name))
    with pytest.raises(SystemExit, match=r"not complete: .*launch\.py"):
        package_vsix.validate(without, TARGETS["linux-x64"])


def test_every_version_of_the_compiled_library_that_is_carried_repairs(tmp_path: Path) -> None:
    """Some platforms have wheels of an older version only: it is tried here, with the wheel for this platform."""
    versions = {target.compiled_version for target in TARGETS.values() if target.compiled_version}
    for version in versions:
        call = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
        folder = tmp_path / version
        subprocess.run([*call, "--target", str(folder), f"{COMPILED}=={version}"], check=True)
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        asked = [sys.executable, "-c", "from libcst._version import __version__; print(__version__)"]
        used = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True)
        assert used.stdout.strip() == version
        tests = ["-k", "not torch", "tests/fixes/test_pages.py", "tests/fixes/test_in_place_forms.py"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", *tests],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_for_one_platform(vsix: Path) -> None:
    with zipfile.ZipFile(vsix) as archive:
        manifest = archive.read("extension.vsixmanifest").decode()
    assert 'TargetPlatform="linux-x64"' in manifest
    assert f'Version="{__version__}"' in manifest


def test_it_holds_what_is_needed_and_nothing_else(vsix: Path) -> None:
    # The archive itself: a server that was started from the unpacked folder has left its byte code there.
    with zipfile.ZipFile(vsix) as archive:
        files = [name for name in archive.namelist() if not name.endswith("/")]
    names = [name.removeprefix("extension/") for name in files if name.startswith("extension/")]
    assert {name.split("/")[0] for name in names} == {
        "LICENSE.txt", "changelog.md", "client", "dist", "libs", "package.json", "readme.md", "server",
    }  # fmt: skip
    assert {name.split("/")[1] for name in names if name.startswith("client/")} == {"media", "samples"}
    strange = ("__pycache__", ".pyc", "gradsight_dev", "/tests/", "torch/", "node_modules", ".map")
    # Our models of libraries have the names of the libraries.
    own = [name for name in names if not name.startswith("server/gradsight/models/")]
    assert [name for name in own if any(word in name for word in strange)] == []
    assert {name.split("/")[1] for name in names if name.startswith("server/")} == {"gradsight"}


def test_its_manifest_needs_no_other_extension(extension: Path) -> None:
    manifest = json.loads((extension / "package.json").read_text())
    assert "extensionDependencies" not in manifest
    assert "devDependencies" not in manifest
    assert "scripts" not in manifest


def test_it_has_a_compiled_library_for_every_python(extension: Path) -> None:
    compiled = [path.name for path in (extension / "libs" / "libcst").glob("native.*.so")]
    assert sorted(compiled) == TARGETS["linux-x64"].modules()
    assert len(compiled) == len(ABIS)


def test_the_licences_of_the_libraries_come_along(extension: Path) -> None:
    for folder in (extension / "libs").glob("*.dist-info"):
        assert (folder / "METADATA").exists(), folder.name


def test_the_other_platforms_are_known() -> None:
    assert set(TARGETS) == {
        f"{system}-{machine}"
        for system in ("linux", "alpine", "darwin", "win32")
        for machine in ("x64", "arm64")
    }


def test_a_machine_is_packed_for_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    check_machine(monkeypatch, "linux", "x86_64", "glibc", "linux-x64")
    check_machine(monkeypatch, "linux", "aarch64", "", "alpine-arm64")
    check_machine(monkeypatch, "darwin", "arm64", "", "darwin-arm64")
    check_machine(monkeypatch, "darwin", "x86_64", "", "darwin-x64")
    check_machine(monkeypatch, "win32", "AMD64", "", "win32-x64")
    with pytest.raises(SystemExit, match="no libraries to carry for linux-riscv64"):
        check_machine(monkeypatch, "linux", "riscv64", "glibc", "")


def check_machine(monkeypatch: pytest.MonkeyPatch, system: str, kind: str, libc: str, target: str) -> None:
    """A machine of this kind is this target."""
    monkeypatch.setattr(package_vsix.sys, "platform", system)
    monkeypatch.setattr(package_vsix.platform, "machine", lambda: kind)
    monkeypatch.setattr(package_vsix.platform, "libc_ver", lambda: (libc, ""))
    assert package_vsix.this_machine() == target


def test_the_client_is_thin() -> None:
    lines = sum(len(path.read_text().splitlines()) for path in (ROOT / "client" / "src").glob("*.ts"))
    assert lines <= MOST_LINES


def check(extension: Path, python: str, folder: Path, **variables: str) -> None:
    """The carried server, started as the client starts it in a folder, finds the hazard and offers the repair."""
    launcher = extension / "server" / "gradsight" / "lsp" / "launch.py"
    environment = {**os.environ, **variables}
    environment.pop("GRADSIGHT_STRICT", None)
    command = ["env", "-C", str(folder), *(f"{name}={value}" for name, value in variables.items())]
    with Editor(command=[*command, python, "-I", "-S", str(launcher)], folders=[folder]) as editor:
        uri = editor.open((folder / "train.py").as_uri(), HAZARD)
        assert editor.codes(uri) == [("GS101", 5)]
        start = HAZARD.index("y *= 3")
        titles = [action["title"] for action in editor.actions(uri, start)]
        assert any("replace with `y = y * 3`" in title for title in titles), titles


def test_the_server_needs_nothing_of_the_interpreter(extension: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    check(extension, str(tmp_path / "bare" / "bin" / "python"), tmp_path)


HOSTILE = {
    "a module of the standard library in the workspace": ("typing.py", "raise SystemExit('shadowed')"),
    "the server's own name in the workspace": ("gradsight/__init__.py", "raise SystemExit('shadowed')"),
    "a library of the server in the workspace": ("attrs/__init__.py", "raise SystemExit('shadowed')"),
    "torch in the workspace": ("torch.py", "raise SystemExit('shadowed')"),
    "pygls in the workspace": ("pygls.py", "raise SystemExit('shadowed')"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_files_of_the_workspace_do_not_get_in_between(case: str, extension: Path, tmp_path: Path) -> None:
    name, text = HOSTILE[case]
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    check(extension, sys.executable, tmp_path, PYTHONPATH=str(tmp_path))


SHADOWS = (
    "ast", "asyncio", "attr", "attrs", "cattrs", "dataclasses", "exceptiongroup", "gradsight", "json", "libcst",
    "lsprotocol", "pygls", "rich", "tomli", "torch", "typing", "typing_extensions", "yaml",
)  # fmt: skip


def test_a_workspace_full_of_shadows_does_not_get_in_between(extension: Path, tmp_path: Path) -> None:
    for name in SHADOWS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('{name} of the workspace')")
    check(extension, sys.executable, tmp_path, PYTHONPATH=str(tmp_path))


def test_packages_of_the_environment_do_not_get_in_between(extension: Path, tmp_path: Path) -> None:
    """Old and broken versions of the server's libraries, a start-up file, and a .pth that imports them early."""
    venv.create(tmp_path / "bad", with_pip=False)
    [packages] = (tmp_path / "bad" / "lib").glob("python*/site-packages")
    for name in ("attr", "attrs", "cattrs", "pygls", "lsprotocol", "typing_extensions", "libcst"):
        (packages / f"{name}.py").write_text("raise RuntimeError('an old version')")
    (packages / "sitecustomize.py").write_text("raise RuntimeError('started with the environment')")
    (packages / "early.pth").write_text("import attr\n")
    check(
        extension, str(tmp_path / "bad" / "bin" / "python"), tmp_path, PYTHONSTARTUP=str(packages / "attr.py")
    )


def test_a_python_without_the_compiled_library_still_checks(extension: Path, tmp_path: Path) -> None:
    """As on a Python that is newer than the extension: no fixes, everything else."""
    import shutil

    copy = tmp_path / "extension"
    shutil.copytree(extension, copy)
    for path in (copy / "libs" / "libcst").glob("native.*"):
        path.unlink()
    launcher = copy / "server" / "gradsight" / "lsp" / "launch.py"
    with Editor(command=[sys.executable, "-I", "-S", str(launcher)]) as editor:
        uri = editor.open("file:///project/train.py", HAZARD)
        assert editor.codes(uri) == [("GS101", 5)]
        editor.actions(uri, HAZARD.index("y *= 3"))
        assert editor.hover(uri, HAZARD.index("y *= 3"))
