"""Brings the pinned sources onto this machine: wheels by pip, repositories by git, each unpacked once into a folder."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from gradsight_dev.injected.catalogue import Origin

FORGE = "https://github.com"


class Unavailable(Exception):
    """A source could not be fetched; the text says why."""


def fetched(origin: Origin, cache: Path, mirror: Path | None = None) -> Path:
    """The folder that holds the source.  `mirror` holds git directories `owner+name/repo` to be asked before the network."""
    folder = cache / f"{origin.name.replace('/', '+')}@{origin.version[:12]}"
    if folder.is_dir():
        return folder
    with tempfile.TemporaryDirectory(dir=_made(cache)) as unfinished:
        place = Path(unfinished) / "source"
        place.mkdir()
        if origin.kind == "wheel":
            _unpack_wheel(origin, Path(unfinished), place)
        else:
            _check_out(origin, Path(unfinished), place, mirror)
        # The mark of a project's root: imports are looked for in here and nowhere else.
        (place / "pyproject.toml").touch()
        place.rename(folder)
    return folder


def _unpack_wheel(origin: Origin, work: Path, place: Path) -> None:
    pinned = f"{origin.name}=={origin.version}"
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "-q", "-d", str(work)]
    _run([sys.executable, "-m", "pip", "download", *options, pinned])
    (wheel,) = work.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place, [name for name in archive.namelist() if name.endswith(".py")])


def _check_out(origin: Origin, work: Path, place: Path, mirror: Path | None) -> None:
    kept = mirror / origin.name.replace("/", "+") / "repo" if mirror is not None else None
    if kept is not None and kept.is_dir():
        directory = kept / ".git" if (kept / ".git").is_dir() else kept
    else:
        directory = work / "git"
        _run(["git", "init", "-q", "--bare", str(directory)])
        address = f"{FORGE}/{origin.name}"
        _run(["git", "--git-dir", str(directory), "fetch", "-q", "--depth", "1", address, origin.version])
    packed = _run(["git", "--git-dir", str(directory), "archive", origin.version, "--", "*.py"])
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(".py"):
                archive.extract(member, place, filter="data")


def _run(call: list[str]) -> bytes:
    done = subprocess.run(call, capture_output=True, check=False)
    if done.returncode != 0:
        raise Unavailable(done.stderr.decode(errors="replace").strip()[-400:])
    return done.stdout


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
