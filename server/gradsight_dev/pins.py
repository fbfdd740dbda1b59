"""Writes constraints.txt: one exact version of every package of the development environment, per Python version.

`python -m gradsight_dev.pins` resolves anew; `--check` only compares the running environment with the file.
pip resolves for another Python version, yet judges markers such as `python_version < "3.11"` by its own, so the
packages that only older versions need are named here.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
ONLY_FOR_OLD_PYTHONS = {
    "3.10": ("tomli", "exceptiongroup", "backports-asyncio-runner", "importlib-metadata", "zipp")
}
BUILD_TOOLS = ("hatchling", "editables")
COMES_WITH_PYTHON = {"pip", "gradsight"}
# torch for graphics cards brings these, and pins them itself; torch for processors alone does without.
ACCELERATORS = re.compile(r"nvidia|cuda|triton")
CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
HEADING = "# Every package of the development environment at one version.  Written by: make pins\n"


def main() -> int:
    """Resolve and write, or with --check say which installed packages differ from the file."""
    parser = argparse.ArgumentParser(prog="python -m gradsight_dev.pins", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the running environment with the file")
    if parser.parse_args().check:
        differences = differences_from_environment(CONSTRAINTS.read_text())
        print("\n".join(differences) if differences else "constraints.txt holds every installed package")
        return 1 if differences else 0
    resolved = {python: resolve(python) for python in PYTHONS}
    CONSTRAINTS.write_text(HEADING + "".join(f"{line}\n" for line in constraint_lines(resolved)))
    return 0


def differences_from_environment(constraints: str) -> list[str]:
    """One sentence per installed package that the constraints do not name, or name at another version."""
    pinned = pins_in_force(constraints)
    differences = []
    for distribution in metadata.distributions():
        name = canonicalize_name(distribution.metadata["Name"])
        installed = distribution.version.split("+")[0]
        if name in COMES_WITH_PYTHON or ACCELERATORS.match(name):
            continue
        if pinned.get(name) != installed:
            differences.append(f"{name} {installed} is installed, constraints.txt has {pinned.get(name)}")
    return sorted(differences)


def pins_in_force(constraints: str, environment: dict[str, str] | None = None) -> dict[str, str]:
    """Package to version, for the running interpreter or for one that differs from it in these markers."""
    pins: dict[str, str] = {}
    for line in constraints.splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate(environment):
                pins[canonicalize_name(requirement.name)] = str(requirement.specifier).removeprefix("==")
    return pins


def resolve(python: str) -> dict[str, str]:
    """What pip would install for this Python version; torch stays as pyproject.toml pins it and is not fetched."""
    asked = [*direct_requirements(), *BUILD_TOOLS, *ONLY_FOR_OLD_PYTHONS.get(python, ())]
    torch_pin = next(line for line in asked if line.startswith("torch=="))
    asked.remove(torch_pin)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        pip += [
            "--only-binary=:all:",
            "--python-version",
            python,
            "--target",
            folder,
            "--report",
            str(report),
        ]
        subprocess.run([*pip, *asked], check=True, stderr=subprocess.DEVNULL)
        installed = json.loads(report.read_text())["install"]
    versions: dict[str, str] = {"torch": torch_pin.removeprefix("torch==")}
    for item in installed:
        versions[canonicalize_name(item["metadata"]["name"])] = item["metadata"]["version"]
    return {name: version for name, version in versions.items() if name not in COMES_WITH_PYTHON}


def direct_requirements() -> list[str]:
    """What GradSight and torch ask for themselves, without the accelerator packages that torch pins exactly."""
    own = [line for line in metadata.requires("gradsight") or [] if keeps(line, {"extra": "dev"})]
    of_torch = [line for line in metadata.requires("torch") or [] if keeps(line, {"extra": ""})]
    plain = [re.split(r"\s*;", line)[0] for line in [*own, *of_torch]]
    return [line for line in plain if not ACCELERATORS.match(line)]


def keeps(requirement: str, environment: dict[str, str]) -> bool:
    """Whether the requirement applies here."""
    marker: Marker | None = Requirement(requirement).marker
    return marker is None or marker.evaluate(environment)


def constraint_lines(resolved: dict[str, dict[str, str]]) -> list[str]:
    """One line per package, or one per range of Python versions where they need different ones."""
    lines = []
    for name in sorted({name for versions in resolved.values() for name in versions}):
        chosen = [(python, versions[name]) for python, versions in resolved.items() if name in versions]
        for version in dict.fromkeys(version for _, version in chosen):
            pythons = [python for python, candidate in chosen if candidate == version]
            lines.append(f"{name}=={version}{marker_for(pythons)}")
    return lines


def marker_for(pythons: list[str]) -> str:
    """The marker for a run of neighbouring Python versions; the newest one stands for all that follow."""
    first, last = PYTHONS.index(pythons[0]), PYTHONS.index(pythons[-1])
    bounds = [f'python_version >= "{pythons[0]}"'] if first > 0 else []
    if last < len(PYTHONS) - 1:
        bounds.append(f'python_version < "{PYTHONS[last + 1]}"')
    return f" ; {' and '.join(bounds)}" if bounds else ""


if __name__ == "__main__":
    raise SystemExit(main())
