"""Packs the editor extension: `python -m gradsight_dev.package_vsix [--target linux-x64 ...|all]`, for here by default.

One .vsix holds the bundled client, the server, and the server's libraries, so that it works offline wherever there is a
Python.  All libraries but one are pure Python; libcst has one compiled module per Python version, whose file names differ,
so that those for all versions lie side by side in one package.  What lies in a target's folder is exactly what is packed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gradsight import __version__
from gradsight_dev.pins import pins_in_force

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build"
WHEELS = BUILD / "wheels"
PURE = ("pygls", "lsprotocol", "cattrs", "attrs", "typing-extensions")
# The standard library has these since Python 3.11.
PURE_FOR_OLDEST = {"exceptiongroup": "3.10", "tomli": "3.10"}
COMPILED = "libcst"
# Python versions of the compiled library; on others the server works and offers no fixes.
ABIS = ("cp310", "cp311", "cp312", "cp313", "cp314", "cp314t")
LEFT_OUT = ("tests/", "codemod/", "__pycache__/", "tool.py", "py.typed")
CARRIED = ("README.md", "CHANGELOG.md", "LICENSE", "client/media", "client/samples", "dist")
MANIFEST_LEFT_OUT = ("private", "scripts", "dependencies", "devDependencies")
LARGEST = 20_000_000


@dataclass(frozen=True, slots=True)
class Target:
    """A platform as VS Code names it, as wheels name it, and how a compiled module ends there."""

    name: str
    platforms: tuple[str, ...]
    suffix: str
    # The newest version of the compiled library that is published for the platform, where that is not the pinned one.
    compiled_version: str | None = None

    def modules(self) -> list[str]:
        """The file names of the compiled module, one for each Python version."""
        names = [f"native.{self.suffix.format(abi=abi, python=abi.removeprefix('cp'))}" for abi in ABIS]
        # Python tells musl from glibc in such names since 3.11.
        return sorted(name.replace("-musl", "-gnu") if "-310-" in name else name for name in names)


TARGETS = {
    target.name: target
    for target in (
        Target(
            "linux-x64",
            ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64"),
            "cpython-{python}-x86_64-linux-gnu.so",
        ),
        Target(
            "linux-arm64",
            ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64"),
            "cpython-{python}-aarch64-linux-gnu.so",
        ),
        Target("alpine-x64", ("musllinux_1_2_x86_64",), "cpython-{python}-x86_64-linux-musl.so"),
        Target("alpine-arm64", ("musllinux_1_2_aarch64",), "cpython-{python}-aarch64-linux-musl.so"),
        Target("darwin-arm64", ("macosx_11_0_arm64",), "cpython-{python}-darwin.so"),
        Target(
            "darwin-x64",
            ("macosx_10_15_x86_64", "macosx_10_12_x86_64"),
            "cpython-{python}-darwin.so",
            compiled_version="1.8.6",
        ),
        Target("win32-x64", ("win_amd64",), "{abi}-win_amd64.pyd"),
        Target("win32-arm64", ("win_arm64",), "{abi}-win_arm64.pyd"),
    )
}


def main() -> int:
    """Pack the targets that are asked for; the path of each .vsix is printed."""
    parser = argparse.ArgumentParser(prog="python -m gradsight_dev.package_vsix", description=__doc__)
    parser.add_argument(
        "--target", action="append", choices=[*TARGETS, "all"], help="this machine by default"
    )
    parser.add_argument("--node", default="node", help="the Node that runs the packing tool")
    args = parser.parse_args()
    asked = args.target or [this_machine()]
    names = list(TARGETS) if "all" in asked else asked
    subprocess.run([args.node, "client/build.mjs"], cwd=ROOT, check=True)
    for name in names:
        print(pack(TARGETS[name], args.node), flush=True)
    return 0


def this_machine() -> str:
    """The target that this machine is."""
    system = {"linux": "linux", "darwin": "darwin", "win32": "win32"}.get(sys.platform, sys.platform)
    if system == "linux" and platform.libc_ver()[0] != "glibc":
        system = "alpine"
    kinds = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
    machine = platform.machine().lower()
    name = f"{system}-{kinds.get(machine, machine)}"
    if name not in TARGETS:
        raise SystemExit(f"there are no libraries to carry for {name}; choose one of {', '.join(TARGETS)}")
    return name


def pack(target: Target, node: str = "node") -> Path:
    """The .vsix for a target."""
    stage = BUILD / "vsix" / target.name
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    carry(stage)
    for wheel in wheels_for(target):
        unpack(wheel, stage / "libs")
    result = BUILD / package_name(target.name)
    tool = ROOT / "node_modules" / "@vscode" / "vsce" / "vsce"
    call = [node, str(tool), "package", "--no-dependencies", "--skip-license", "--target", target.name]
    run_unasked([*call, "--out", str(result)], stage)
    validate(result, target)
    return result


def run_unasked(call: list[str], folder: Path) -> None:
    """Run the packing tool, whose output is shown if it fails.

    It has no standard input: what it asks would not be seen, and could not be answered.
    """
    done = subprocess.run(
        call, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)


def package_name(target: str) -> str:
    """The name of the .vsix for a target."""
    return f"gradsight-{target}-{__version__}.vsix"


def validate(vsix: Path, target: Target) -> None:
    """Refuse what an editor on this platform could not use: another platform's libraries, a missing part, or too much."""
    with zipfile.ZipFile(vsix) as archive:
        names = archive.namelist()
        manifest = archive.read("extension.vsixmanifest").decode()
    modules = sorted(Path(name).name for name in names if Path(name).name.startswith("native."))
    needed = ("package.json", "dist/extension.js", "server/gradsight/lsp/launch.py", "libs/pygls/server.py")
    missing = [name for name in needed if f"extension/{name}" not in names]
    if modules != target.modules():
        raise SystemExit(f"{vsix.name} has the compiled modules {modules} instead of {target.modules()}")
    if missing or f'TargetPlatform="{target.name}"' not in manifest:
        raise SystemExit(f"{vsix.name} is not complete: {missing or 'its platform is not ' + target.name}")
    if vsix.stat().st_size >= LARGEST:
        raise SystemExit(f"{vsix.name} is larger than {LARGEST} bytes")


def carry(stage: Path) -> None:
    """Everything that is the same on every platform: manifest, client, server, pictures."""
    manifest = json.loads((ROOT / "package.json").read_text())
    kept = {key: value for key, value in manifest.items() if key not in MANIFEST_LEFT_OUT}
    kept["files"] = [*CARRIED, "server", "libs"]
    (stage / "package.json").write_text(json.dumps(kept, indent=2) + "\n")
    for name in CARRIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, stage / name)
        else:
            shutil.copy(source, stage / name)
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(ROOT / "server" / "gradsight", stage / "server" / "gradsight", ignore=ignored)


def wheels_for(target: Target) -> list[Path]:
    """The wheels of the server's libraries, fetched once."""
    pins = pins_in_force((ROOT / "constraints.txt").read_text())
    oldest = pins_in_force((ROOT / "constraints.txt").read_text(), {"python_version": "3.10"})
    wheels = [fetch(name, pins[name], "any", ("--platform", "any")) for name in PURE]
    wheels += [
        fetch(name, oldest[name], "any", ("--platform", "any", "--python-version", version))
        for name, version in PURE_FOR_OLDEST.items()
    ]
    for abi in ABIS:
        version = abi.removeprefix("cp").rstrip("t")
        options = ["--implementation", "cp", "--abi", abi, "--python-version", version]
        for wheel_platform in target.platforms:
            options += ["--platform", wheel_platform]
        compiled = target.compiled_version or pins[COMPILED]
        wheels.append(fetch(COMPILED, compiled, f"{target.name}-{abi}", options))
    return wheels


def fetch(name: str, version: str, kind: str, options: Iterable[str]) -> Path:
    """One wheel, from the folder of fetched ones if it is there."""
    folder = WHEELS / kind / f"{name}-{version}"
    present = list(folder.glob("*.whl"))
    if present:
        return present[0]
    call = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    call += ["--disable-pip-version-check", "--dest", str(folder), *options, f"{name}=={version}"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{name} {version} cannot be had for {kind}:\n{done.stderr}")
    return next(folder.glob("*.whl"))


def unpack(wheel: Path, folder: Path) -> None:
    """The files of a wheel that the server needs; metadata stays for the licences in it."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not any(part in name for part in LEFT_OUT):
                archive.extract(name, folder)
    for record in folder.glob("*.dist-info/RECORD"):
        os.remove(record)


if __name__ == "__main__":
    raise SystemExit(main())
