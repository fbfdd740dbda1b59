"""A real workspace checked: processor time and memory beside `ty check` of the same files, as ratios measured in one run.

    python benchmarks/workspace_speed.py [--wheels FOLDER] [--tools FOLDER] [--tree NAME] [--files PATTERN] [--whole] [--every N]

The trees are made from the pinned wheels below: downloaded without what they depend on, or taken from `--wheels`, and unpacked into a
temporary folder.  `--tools` is the `bin` of an environment that has `ty`; without it only our own ratios are printed.
*Unbound*: files in which names are not known because the budget of an import or of the file was spent, by their gaps.
Memory is that of all processes together; what watching it costs does not count.  The package is compiled before, as an
installed one is.  What an editor waits for in such a tree is measured by `workspace_editor.py`.
The edit is a line that changes nothing, put into the largest file that nothing else in the selection imports.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

PINNED = {"transformers": "5.22.2", "timm": "1.0.30", "diffusers": "0.42.1"}
SELECTED = {
    "transformers": "transformers/models/[a-d]*",
    "timm": "timm/models",
    "diffusers": "diffusers/models",
}
SPENT = "budget"
"""The kind of gap that stands where work ended early."""
UNBOUND = "was imported"
"""In the reason of a gap: it was a module that could not be executed to its end."""


@dataclass(frozen=True)
class Run:
    """One command: processor seconds and megabytes at the peak, of all its processes together, and what it printed."""

    seconds: float
    megabytes: float
    output: str


def main() -> int:
    """Print the ratios of each tree."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--wheels", type=Path, help="a folder with the pinned wheels; they are downloaded without it"
    )
    parser.add_argument("--tools", type=Path, default=Path(sys.executable).parent)
    parser.add_argument("--tree", choices=sorted(PINNED), action="append", help="only this tree (all)")
    parser.add_argument(
        "--files", help="a pattern of files and folders inside the tree, in place of the usual one"
    )
    parser.add_argument("--whole", action="store_true", help="the whole tree")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth file (1)")
    args = parser.parse_args()
    compile_package()
    with tempfile.TemporaryDirectory() as home:
        for name in args.tree or PINNED:
            tree = unpacked(name, Path(home), args.wheels)
            pattern = name if args.whole else args.files or SELECTED[name]
            files = files_of(tree, pattern)[:: args.every]
            measure(tree, files, shutil.which("ty", path=str(args.tools.absolute())))
            shutil.rmtree(tree)
    return 0


def compile_package() -> None:
    """Leave nothing of our package to be compiled when a command begins, whatever the environment says of bytecode."""
    package = find_spec("gradsight")
    assert package is not None
    assert package.submodule_search_locations
    for folder in package.submodule_search_locations:
        compileall.compile_dir(folder, quiet=1)


def unpacked(name: str, home: Path, wheels: Path | None) -> Path:
    """The tree of a pinned wheel, as a project of its own."""
    wanted = f"{name}=={PINNED[name]}"
    folder = wheels or home / "wheels"
    if wheels is None:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--quiet",
            "--dest",
            str(folder),
            wanted,
        ]
        subprocess.run(command, check=True)
    wheel = next(folder.glob(f"{name}-{PINNED[name]}-*.whl"))
    tree = home / name
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tree, [one for one in packed.namelist() if one.endswith(".py")])
    (tree / "pyproject.toml").touch()
    return tree


def files_of(tree: Path, pattern: str) -> list[str]:
    """The Python files that a pattern of files and folders selects."""
    found: list[Path] = []
    for path in sorted(tree.glob(pattern)):
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [str(path.relative_to(tree)) for path in found]


def measure(tree: Path, files: Sequence[str], ty: str | None) -> None:
    """Check the files cold, again, and after an edit, and print what it cost beside ty."""
    check = [sys.executable, "-m", "gradsight", "check", "--exit-zero", *files]
    cold = run(tree, [*check, "--no-cache", "--gaps", "--output-format", "json"])
    run(tree, check)
    again = run(tree, check)
    edited = tree / leaf(tree, files)
    edited.write_text(edited.read_text(encoding="utf-8") + "\n_edited = 1\n", encoding="utf-8")
    after = run(tree, check)
    lines = sum((tree / file).read_text(encoding="utf-8").count("\n") for file in files)
    spent, unbound = ended_early(cold.output)
    print(f"{tree.name} {PINNED[tree.name]}: {len(files)} files, {lines} lines")
    print(
        f"  cold                   {cold.seconds:8.1f} s of processor time, {1e6 * cold.seconds / lines:.0f} µs per line"
    )
    if ty is not None:
        peer = run(tree, [ty, "check", "--exit-zero", *files])
        print(f"  cold / ty              {cold.seconds / peer.seconds:8.1f}   (ty {peer.seconds:.1f} s)")
        print(
            f"  memory / ty            {cold.megabytes / peer.megabytes:8.1f}   (ours {cold.megabytes:.0f} MB)"
        )
    print(f"  cold / unchanged       {cold.seconds / again.seconds:8.1f}")
    print(f"  cold / one edit        {cold.seconds / after.seconds:8.1f}   ({edited.relative_to(tree)})")
    print(f"  files with spent budgets {spent:6}   with names unbound for it: {unbound}")


def run(tree: Path, command: Sequence[str]) -> Run:
    """Run a command to its end; all processes that it starts count."""
    # A process of its own, so that the peak of the memory is this command's.
    told = subprocess.run(
        [sys.executable, "-c", MEASURED, *command], cwd=tree, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_COLOR": "1", "VIRTUAL_ENV": sys.prefix},
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    seconds, kilobytes = told.stderr.split()[-2:]
    return Run(float(seconds), int(kilobytes) / 1024, told.stdout)


MEASURED = """
import glob, resource, subprocess, sys, time

def held(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as told:
            own = sum(int(line.split()[1]) for line in told if line.startswith("Pss:"))
        inner = " ".join(open(path).read() for path in glob.glob(f"/proc/{pid}/task/*/children")).split()
    except OSError:
        return 0
    return own + sum(map(held, inner))

most, running = 0, subprocess.Popen(sys.argv[1:])
while running.poll() is None:
    most = max(most, held(running.pid))
    time.sleep(0.1)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("", used.ru_utime + used.ru_stime, max(most, used.ru_maxrss), file=sys.stderr)
sys.exit(running.returncode)
"""
"""Runs a command and tells the processor seconds that it took, and the most that it and its processes held together, what they
share counted once."""


def leaf(tree: Path, files: Sequence[str]) -> str:
    """The largest file with torch in it whose module no other of the files names, but for lists of what a package has."""
    texts = {file: (tree / file).read_text(encoding="utf-8") for file in files}
    users = {file: text for file, text in texts.items() if Path(file).stem != "__init__"}
    for file in sorted(files, key=lambda one: -len(texts[one])):
        stem = Path(file).stem
        is_named = any(stem in text for other, text in users.items() if other != file)
        if stem != "__init__" and "import torch" in texts[file] and not is_named:
            return file
    return files[0]


def ended_early(output: str) -> tuple[int, int]:
    """In how many files some work ended early, and in how many of them names of an import were not bound for it."""
    spent = unbound = 0
    for file in json.loads(output).get("files", ()):
        reasons = [gap["reason"] for gap in file["gaps"] if gap["kind"] == SPENT]
        spent += bool(reasons)
        unbound += any(UNBOUND in reason for reason in reasons)
    return spent, unbound


if __name__ == "__main__":
    raise SystemExit(main())
