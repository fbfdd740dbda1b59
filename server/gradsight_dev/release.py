"""The road to a release: `python -m gradsight_dev.release version TAG | check [VSIX ...] | mirror TAG FOLDER`.

`version` gives every file the version of a tag, and the changelog the day.  `check` builds the wheel and the source
archive, reads their metadata, lets twine look at both, installs the wheel with pip into an empty environment, without a
network, and tries it; each `.vsix` is put where an editor puts it, and its server started.  `mirror` brings the hooks for
pre-commit up to date.
"""

from __future__ import annotations

import argparse
import base64
import datetime
import hashlib
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
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from gradsight_dev.package_vsix import TARGETS, package_name, validate

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
    checking = commands.add_parser("check")
    checking.add_argument("--twine", type=Path, help="an interpreter that has twine")
    checking.add_argument(
        "--target", choices=[*TARGETS, "all"], default="all", help="whose extension must be there"
    )
    checking.add_argument("extensions", nargs="*", type=Path)
    mirror = commands.add_parser("mirror")
    mirror.add_argument("tag")
    mirror.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.command == "version":
        stamp(ROOT, version_of(options.tag), datetime.date.today())
    elif options.command == "mirror":
        write_mirror(options.folder, version_of(options.tag))
    else:
        wanted = list(TARGETS) if options.target == "all" else [options.target]
        check(options.extensions, options.twine, wanted)
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


def check(extensions: list[Path], twine: Path | None, targets: list[str]) -> None:
    """Builds and tries everything that a release ships."""
    shutil.rmtree(BUILT, ignore_errors=True)
    wheel, archive = build(BUILT)
    for line in metadata_problems(wheel):
        raise SystemExit(f"{wheel.name}: {line}")
    try_archive(archive)
    if twine is not None:
        check_by_twine(twine, [wheel, archive])
    with tempfile.TemporaryDirectory() as folder:
        environment = install(wheel, Path(folder))
        try_installed(environment, Path(folder))
    print(f"{wheel.name} and {archive.name} are well")
    packed = {each.name for each in extensions}
    missing = [name for name in map(package_name, targets) if extensions and name not in packed]
    if missing:
        raise SystemExit(f"there is no {', '.join(missing)}")
    for extension in extensions:
        with tempfile.TemporaryDirectory() as folder:
            try_extension(extension, Path(folder))
        print(f"{extension.name} is well")


def check_by_twine(python: Path, files: list[Path]) -> None:
    """What the package index would refuse to show is refused here, warnings too."""
    command = [str(python), "-m", "twine", "check", "--strict", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or done.stdout.count("PASSED") != len(files):
        raise SystemExit(f"twine: {done.stdout}{done.stderr}")


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


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    folder: Path

    def program(self, name: str) -> Path:
        """A program of it."""
        return self.folder / (f"Scripts/{name}.exe" if os.name == "nt" else f"bin/{name}")

    @property
    def site(self) -> Path:
        """Where pip puts packages."""
        command = [
            str(self.program("python")),
            "-c",
            "import sysconfig; print(sysconfig.get_path('purelib'))",
        ]
        return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def install(wheel: Path, folder: Path) -> Environment:
    """An empty environment into which pip installed the wheel, from a folder and from no index."""
    shelf = folder / "shelf"
    shelf.mkdir()
    for distribution in needed("gradsight"):
        repack(distribution, shelf)
    venv.create(folder / "empty", with_pip=True)
    environment = Environment(folder / "empty")
    command = [str(environment.program("python")), "-m", "pip", "install", "--quiet", "--no-index"]
    command += ["--disable-pip-version-check", "--no-cache-dir", "--find-links", str(shelf), str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"pip does not install {wheel.name}: {done.stderr}")
    return environment


def repack(distribution: metadata.Distribution, folder: Path) -> Path:
    """The wheel that an installed distribution came from, so that it can be installed again without a network."""
    tags = re.findall(r"^Tag: (.+)$", distribution.read_text("WHEEL") or "", re.MULTILINE)
    name = canonicalize_name(distribution.name).replace("-", "_")
    parts = [sorted({tag.split("-")[place] for tag in tags}) for place in range(3)]
    wheel = folder / f"{name}-{distribution.version}-{'-'.join('.'.join(part) for part in parts)}.whl"
    rows, information = [], ""
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in distribution.files or ():
            source = Path(str(distribution.locate_file(file)))
            if ".." in file.parts or file.suffix == ".pyc" or not source.is_file():
                continue
            if file.parts[0].endswith(".dist-info"):
                information = file.parts[0]
                if file.name in ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json"):
                    continue
            content = source.read_bytes()
            archive.writestr(file.as_posix(), content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            rows.append(f"{file.as_posix()},sha256={digest},{len(content)}\n")
        record = f"{information}/RECORD"
        archive.writestr(record, "".join([*rows, f"{record},,\n"]))
    return wheel


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


def try_installed(environment: Environment, folder: Path) -> None:
    """What pip installed is imported, and its command works; torch is this environment's, GradSight is that one's."""
    python = str(environment.program("python"))
    said = subprocess.run(
        [python, "-I", "-c", "import gradsight; print(gradsight.__file__)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    if not Path(said.strip()).resolve().is_relative_to(environment.folder.resolve()):
        raise SystemExit(f"gradsight was imported from {said}")
    for command in ([str(environment.program("gradsight"))], [python, "-I", "-m", "gradsight"]):
        try_command(command, folder)
    watched = folder / "watched.py"
    watched.write_text(f"import gradsight\ngradsight.watch()\n{FAULTY}", "utf-8")
    done = subprocess.run(
        [sys.executable, str(watched)],
        env={**os.environ, "PYTHONPATH": str(environment.site)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "gradsight: " not in done.stderr or str(environment.site) not in done.stderr:
        raise SystemExit(f"the installed watch says nothing: {done.stderr}")


def try_command(command: list[str], folder: Path) -> None:
    """The installed command says its version and finds a fault."""
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
    """Put where VS Code puts it, the extension is complete, and its server starts with the libraries beside it alone."""
    home = unpack_as_editor(extension, folder)
    launcher = next(home.rglob("launch*.py"), None)
    if launcher is None or not (home / "dist" / "extension.js").is_file():
        raise SystemExit(f"{extension.name} has no client or no server")
    validate(extension, TARGETS[home.name.split("-", 2)[2]])
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


def unpack_as_editor(extension: Path, folder: Path) -> Path:
    """`publisher.name-version-platform` below the folder of extensions, with what lies below `extension/` in the archive."""
    with zipfile.ZipFile(extension) as archive:
        names = archive.namelist()
        if "extension.vsixmanifest" not in names:
            raise SystemExit(f"{extension.name} has no client or no server")
        text = archive.read("extension.vsixmanifest").decode("utf-8")
        identity = text.partition("<Identity")[2].partition(">")[0]
        fields = dict(re.findall(r'(\w+)="([^"]*)"', identity))
        package = json.loads(archive.read("extension/package.json"))
        said = (fields["Publisher"], fields["Id"], fields["Version"])
        if said != (package["publisher"], package["name"], package["version"]):
            raise SystemExit(f"{extension.name}: its manifests do not agree: {said}")
        home = folder / f"{said[0]}.{said[1]}-{said[2]}-{fields['TargetPlatform']}"
        for name in names:
            if name.startswith("extension/") and not name.endswith("/"):
                target = home / name.removeprefix("extension/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))
    return home


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
