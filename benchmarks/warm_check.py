"""A second check of an unchanged tree against the first one, as a ratio measured in one run.

    python benchmarks/warm_check.py [FOLDER] [--repeats N]

The tree is a copy of torch/nn, or of another folder.  Both are whole runs of the command, start of Python included.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path


def main() -> int:
    """Print both times and their ratio; 1 if the second run is not ten times faster."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", nargs="?", default=os.path.join(sysconfig.get_path("purelib"), "torch", "nn")
    )
    parser.add_argument("--repeats", type=int, default=5, help="second runs; the best of them counts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        tree = Path(home) / "tree"
        shutil.copytree(
            args.folder,
            tree,
            ignore=lambda _, names: [n for n in names if not n.endswith(".py") and "." in n],
        )
        (tree / "pyproject.toml").write_text("[project]\nname = 'tree'\n")
        cold, said = timed(tree)
        warm, said_again = min((timed(tree) for _ in range(args.repeats)), key=lambda run: run[0])
        files = sum(1 for _ in tree.rglob("*.py"))
    if said != said_again:
        print("the second run does not say what the first one said", file=sys.stderr)
        return 1
    print(f"files        {files}")
    print(f"cold         {cold:.2f} s")
    print(f"warm         {warm:.2f} s")
    print(f"cold / warm  {cold / warm:.1f}")
    return 0 if cold >= 10 * warm else 1


def timed(tree: Path) -> tuple[float, str]:
    """How long one check takes, and what it says."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "gradsight", "check", "."], cwd=tree, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return time.perf_counter() - start, done.stdout


if __name__ == "__main__":
    raise SystemExit(main())
