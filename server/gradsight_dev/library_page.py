"""Writes docs/libraries.md: what the models of libraries know, and which version of each library has confirmed it."""

from __future__ import annotations

import argparse
import ast
import json
from pathlib import Path

from gradsight.analysis import MODELS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "libraries.md"
TESTS = ROOT / "tests" / "models"
MARK = "<!-- Written by: .venv/bin/python -m gradsight_dev.library_page -->"
DISTRIBUTIONS = {
    "ema_pytorch": "ema-pytorch",
    "ignite": "pytorch-ignite",
    "segmentation_models_pytorch": "segmentation-models-pytorch",
    "stable_baselines3": "stable-baselines3",
    "torch_geometric": "torch-geometric",
}
TEXT = """MARK
# Libraries

What a library does with your code is written down as a little Python library of the same name: a *model*. GradSight executes
it as it executes your program, on paper; nothing of it is ever run, and the library itself need not be installed.

Every model is held against its library, with torch TORCH (`make test-models`). Tiny programs are run under both, and must see the
same: the order of forward, `zero_grad`, backward, `step` and hooks; the parts of a network, their names and their order; what is
trained, what is frozen and what gets a gradient; what has a graph and what shares memory. And every name that a model defines,
with its parameters, is looked up in the library. The compiled operators of torchvision are left out: a CPU build of torch may lack
them, so that what needs them (the training of a Faster R-CNN) was compared by its parts alone.

Findings stand in your code, never in a model: at the line that hands a loss to the library (`return loss` in a `training_step`,
`accelerator.backward(loss)`). A class that a library runs (a `LightningModule`, a `Trainer` with its own `compute_loss`, a
`Callback`) is run by its model even if nothing in the file starts it.

What a model does not have is unknown, as is a library without a model. [Your own trainer](your-trainer.md) costs one file.

| library | what is known | confirmed by |
| --- | --- | --- |
ROWS

A finding that you think is wrong because of what a library does is a fault of its model: please report it.
"""


def main() -> int:
    """Write the page, or with --check say whether it is stale."""
    parser = argparse.ArgumentParser(prog="python -m gradsight_dev.library_page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    is_check = parser.parse_args().check
    text = page()
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    if is_check:
        print(f"stale: {PAGE.name}")
        return 1
    PAGE.write_text(text)
    return 0


def page() -> str:
    """The page as it should be."""
    kept = json.loads((TESTS / "orders.json").read_text())
    confirmed = recorded_libraries()
    rows = []
    for name, text in sorted(libraries().items(), key=lambda item: item[0].lower()):
        version = kept["versions"].get(DISTRIBUTIONS.get(name, name), "")
        proof = f"{name} {version}" if name in confirmed and version else ""
        rows.append(f"| `{name}` | {text} | {proof} |")
    return (
        TEXT.replace("MARK", MARK)
        .replace("TORCH", kept["versions"]["torch"])
        .replace("ROWS", "\n".join(rows))
    )


def libraries() -> dict[str, str]:
    """The top-level names that have a model, and what the model says it is about."""
    found = {}
    for entry in sorted(MODELS.iterdir()):
        file = entry / "__init__.py" if entry.is_dir() else entry
        if file.suffix == ".py" and file.exists():
            words = ast.get_docstring(ast.parse(file.read_text())) or ""
            found[entry.stem] = " ".join(words.split())
    return found


def recorded_libraries() -> set[str]:
    """The libraries that a recorded program imports."""
    found: set[str] = set()
    for program in (TESTS / "programs").glob("*.py"):
        for node in ast.walk(ast.parse(program.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names.append(node.module or "")
            found.update(name.partition(".")[0] for name in names)
    return found


if __name__ == "__main__":
    raise SystemExit(main())
