"""The road to a release: `python -m gradsight_dev.release version TAG | check [VSIX ...] | mirror TAG FOLDER`.

`version` gives every file the version of a tag, and the changelog the day.  `check` builds the wheel and the source
archive, reads their metadata, installs the wheel into an empty environment beside copies of what it needs, without a
network, and tries it; each `.vsix` is unpacked and its server started.  `mirror` brings the hooks for pre-commit up to date.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "release"
INIT = "server/gradsight/__init__.py"
# A faulty program and what `check` must say about it.
FAULTY = "import torch\nw = torch.ones(3, requires_grad=True)\ny = w.exp()\ny *= 2\ny.sum().backward()\n"
MIRROR_PROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "gradsight-pre-commit"
version = "{version}"
description = "The hooks of GradSight."
requires-python = ">=3.10"
dependencies = ["gradsight=={version}"]

[tool.setuptools]
py-modules = []
"""
# pre-commit installs the repository that the hooks are in, before what they name.
HOOK = 'additional_dependencies: ["gradsight=={}"]'


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("version").add_argument("tag")
    commands.add_parser("check").add_argument("extensions", nargs="*", type=Path)
    mirror = commands.add_parser("mirror")
    mirror.add_argument("tag")
    mirror.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.command == "version":
        stamp(ROOT, version_of(options.tag), datetime.date.today())
    elif options.command == "mirror":
        write_mirror(options.folder, version_of(options.tag))
    else:
        check(options.extensions)
    return 0


def version_of(tag: str) -> str:
    """The version that a tag names: `v1.2.3`."""
    match = re.fullmatch(r"v(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)", tag)
    if match is None:
        raise SystemExit(f"{tag} is no tag of a release: v1.2.3 is one")
    return match.group(1)


def stamp(root: Path, version: str, day: datetime.date) -> None:
    """Writes the version, and the day into the changelog; a changelog without this version is refused."""
    _replace(root / INIT, r'__version__ = "[^"]+"', f'__version__ = "{version}"')
    for name in ("package.json", "package-lock.json"):
        path = root / name
        content = json.loads(path.read_text("utf-8"))
        content["version"] = version
        if "packages" in content:
            content["packages"][""]["version"] = version
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
    _replace(
        root / "CHANGELOG.md",
        rf"^## {re.escape(version)}( \(.*\))?$",
        f"## {version} ({day.isoformat()})",
    )


def _replace(path: Path, pattern: str, text: str) -> None:
    changed, count = re.subn(pattern, text, path.read_text("utf-8"), flags=re.MULTILINE)
    if count != 1:
        raise SystemExit(f"{path.name} has {count} places for the version where one is needed: {pattern}")
    path.write_text(changed, "utf-8")


def check(extensions: list[Path]) -> None:
    """Builds and tries everything that a release ships."""
    shutil.rmtree(BUILT, ignore_errors=True)
    wheel, archive = build(BUILT)
    for line in metadata_problems(wheel):
        raise SystemExit(f"{wheel.name}: {line}")
    try_archive(archive)
    with tempfile.TemporaryDirectory() as folder:
        python = install(wheel, Path(folder))
        try_command([str(python), "-I", "-m", "gradsight"], Path(folder))
    print(f"{wheel.name} and {archive.name} are well")
    for extension in extensions:
        with tempfile.TemporaryDirectory() as folder:
            try_extension(extension, Path(folder))
        print(f"{extension.name} is well")


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source archive."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def metadata_problems(wheel: Path) -> Iterator[str]:
    """What a package index would object to, or a reader miss."""
    archive = zipfile.ZipFile(wheel)
    name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
    fields = metadata.PathDistribution(zipfile.Path(archive, name.rpartition("/")[0] + "/")).metadata
    for field in (
        "Name",
        "Version",
        "Summary",
        "License-Expression",
        "Requires-Python",
        "Description-Content-Type",
    ):
        if not fields.get_all(field):
            yield f"there is no {field}"
    if len(fields.get_all("Project-URL") or ()) < 4:
        yield "addresses of the project are missing"
    described = [each for each in fields.get_all("Classifier") or () if "Python :: 3." in each]
    if len(described) < 5:
        yield "the versions of Python are not named"
    if not (fields.get_payload() or "").strip():  # type: ignore[attr-defined]
        yield "there is no description"
    if not any("/licenses/" in each for each in archive.namelist()):
        yield "there is no licence in it"


def try_archive(archive: Path) -> None:
    """The source archive holds what a wheel is made of."""
    with tarfile.open(archive) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    missing = {"pyproject.toml", ".ci/readme_links.py", "README.md", "LICENSE", INIT} - names
    if missing:
        raise SystemExit(f"{archive.name} lacks {sorted(missing)}")


def install(wheel: Path, folder: Path) -> Path:
    """An empty environment with the wheel and copies of what it needs; its interpreter."""
    venv.create(folder / "empty", with_pip=False)
    is_windows = os.name == "nt"
    python = folder / "empty" / ("Scripts/python.exe" if is_windows else "bin/python")
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    zipfile.ZipFile(wheel).extractall(site)
    for distribution in needed("gradsight"):
        for file in distribution.files or ():
            source = Path(str(distribution.locate_file(file)))
            if ".." not in file.parts and source.is_file() and source.suffix != ".pyc":
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
    return python


def needed(name: str) -> list[metadata.Distribution]:
    """What a distribution needs at run time, and what those need."""
    found: dict[str, metadata.Distribution] = {}
    todo = [name]
    while todo:
        for text in metadata.requires(todo.pop()) or ():
            requirement = Requirement(text)
            key = canonicalize_name(requirement.name)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
                continue
            if key not in found:
                found[key] = metadata.distribution(requirement.name)
                todo.append(requirement.name)
    return list(found.values())


def try_command(command: list[str], folder: Path) -> None:
    """The installed command says its version, finds a fault and fixes nothing that is well."""
    program = folder / "faulty.py"
    program.write_text(FAULTY, "utf-8")
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout.split()[
        -1
    ]
    Version(said)
    found = subprocess.run(
        [*command, "check", "--no-cache", "--format", "json", str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode != 1 or [each["code"] for each in json.loads(found.stdout)] != ["GS101"]:
        raise SystemExit(f"the installed command does not find a fault: {found.stdout}{found.stderr}")


def try_extension(extension: Path, folder: Path) -> None:
    """The server in an unpacked extension starts, with the libraries that lie beside it and no others."""
    zipfile.ZipFile(extension).extractall(folder)
    launcher = next((folder / "extension").rglob("launch*.py"), None)
    if launcher is None or not (folder / "extension" / "dist" / "extension.js").is_file():
        raise SystemExit(f"{extension.name} has no client or no server")
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(launcher)],
        input=b"".join(_framed(each) for each in _CONVERSATION),
        capture_output=True,
        check=False,
        timeout=300,
    )
    if done.returncode != 0 or b'"capabilities"' not in done.stdout:
        said = done.stderr.decode("utf-8", "replace")
        raise SystemExit(
            f"the server of {extension.name} does not start: exit status {done.returncode}: {said}"
        )


# A client that opens a conversation, and ends it as the protocol wants.
_CONVERSATION: tuple[dict[str, object], ...] = (
    {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}},
    {"method": "initialized", "params": {}},
    {"id": 2, "method": "shutdown"},
    {"method": "exit"},
)


def _framed(message: dict[str, object]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def write_mirror(folder: Path, version: str) -> None:
    """The hooks of the mirror install this version; one commit and one tag."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8")
    hooks = re.sub(r"(  language: python\n)", rf"\1  {HOOK.format(version)}\n", text)
    (folder / ".pre-commit-hooks.yaml").write_text(hooks, "utf-8")
    (folder / "pyproject.toml").write_text(MIRROR_PROJECT.format(version=version), "utf-8")
    for command in (
        ["add", "-A"],
        ["-c", "user.name=gradsight", "-c", "user.email=noreply@gradsight.invalid", "commit", "-m", version],
        ["tag", f"v{version}"],
        ["push", "--follow-tags", "origin", "HEAD", f"v{version}"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)


if __name__ == "__main__":
    sys.exit(main())
