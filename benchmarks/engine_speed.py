"""The cost of an analysis, as ratios measured in one run: to `ast.parse`, to the length of the file, and to other checkers.

    python benchmarks/engine_speed.py [--peers]

`--peers` also runs `ruff`, `ty` and TorchFix over torch/nn where they are installed.
"""

from __future__ import annotations

import argparse
import ast
import gc
import shutil
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

from gradsight.analysis import analyze
from gradsight.model import Source

LAYER = """
class Block{n}(nn.Module):
    def __init__(self, dim, heads=4, dropout=0.1):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attention = nn.MultiheadAttention(dim, heads, dropout=dropout)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        h = self.norm(x)
        h, _ = self.attention(h, h, h, attn_mask=mask)
        x = x + self.drop(h)
        h = self.up(self.norm(x))
        h = self.act(h)
        if self.training:
            h = h * 0.9
        x = x + self.drop(self.down(h))
        return x

"""


def model_file(lines: int) -> str:
    """A model file of about that many lines."""
    blocks = max(1, lines // LAYER.count("\n"))
    return "import torch\nfrom torch import nn\n" + "".join(
        LAYER.replace("{n}", str(n)) for n in range(blocks)
    )


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """The median time of one call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def against_parsing() -> None:
    text = model_file(1200)
    parse = seconds(lambda: ast.parse(text), 15)
    full = seconds(lambda: analyze(Source("model.py", text)))
    print(f"1,200-line model file: {full / parse:.1f} x ast.parse (bar 12)")


def against_length(rounds: int = 5) -> None:
    """Each round analyses every length once, so that the load of the machine is shared; medians over the rounds."""
    texts = {lines: model_file(lines) for lines in (6_250, 12_500, 25_000, 50_000)}
    times: dict[int, list[float]] = {lines: [] for lines in texts}
    for _ in range(rounds):
        for lines, text in texts.items():
            # What the last analysis left behind is not this one's cost.
            gc.collect()
            start = time.perf_counter()
            analyze(Source("model.py", text))
            times[lines].append(time.perf_counter() - start)
    for lines, costs in times.items():
        half = times.get(lines // 2)
        ratio = ""
        if half:
            steps = sorted(cost / before for cost, before in zip(costs, half))
            ratio = f", {statistics.median(steps):.2f} x the half (bar 2.2; rounds {steps[0]:.2f} to {steps[-1]:.2f})"
        print(f"{lines:>6} lines: {statistics.median(costs) * 1e6 / lines:.0f} us per line{ratio}")


def against_shapes() -> None:
    nested = "import torch\ndef loss(x):\n" + "".join(
        "    " * (n + 1) + f"if x.flag{n}:\n" for n in range(20)
    )
    nested += "    " * 21 + "x = x.exp()\n    x *= 2\n    return x\n"
    branches = "import torch\ndef loss(x, cfg):\n" + "".join(
        f"    if cfg.a{n}:\n        x = x * {n}\n" for n in range(200)
    )
    branches += "    return x.sum()\n"
    for name, text in (("20 levels of nesting", nested), ("200 branches", branches)):
        parse = seconds(lambda text=text: ast.parse(text))  # type: ignore[misc]
        full = seconds(lambda text=text: analyze(Source("shape.py", text)))  # type: ignore[misc]
        print(f"{name}: {full / parse:.1f} x ast.parse")


def against_peers() -> None:
    folder = Path(sysconfig.get_paths()["purelib"]) / "torch" / "nn"
    scripts = Path(sys.executable).parent
    commands = {
        "gradsight check": [str(scripts / "gradsight"), "check", "--no-cache", str(folder)],
        "ruff (all rules)": ["ruff", "check", "--select", "ALL", "--no-cache", "--isolated", str(folder)],
        "ty check": ["ty", "check", str(folder)],
        "torchfix": ["torchfix", str(folder)],
    }
    ours = 0.0
    for name, command in commands.items():
        program = shutil.which(command[0]) or shutil.which(command[0], path=str(scripts))
        if program is None:
            print(f"{name}: not installed")
            continue
        cost = seconds(
            lambda call=[program, *command[1:]]: subprocess.run(call, capture_output=True, check=False), 3
        )  # type: ignore[misc]
        ours = ours or cost
        print(f"{name} over torch/nn, cold: {cost:.2f} s, {cost / ours:.1f} x ours")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", action="store_true", help="also run other checkers over torch/nn")
    args = parser.parse_args()
    against_parsing()
    against_length()
    against_shapes()
    if args.peers:
        against_peers()


if __name__ == "__main__":
    main()
