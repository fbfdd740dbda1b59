"""Whether a text has to do with torch: it speaks of it, or imports a library that is known to train with it."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

TORCH, BACKWARD = b"torch", b".backward("
IMPORT = re.compile(rb"^[ \t]*\"?(?:from|import)[ \t]+(\w+)", re.MULTILINE)
"""Also in the cells of a notebook, whose lines are strings."""
SHIPPED = Path(__file__).parents[1] / "models"
OTHER_FRAMEWORKS = frozenset({"chainer", "flax", "jax", "keras", "mindspore", "mlx", "mxnet", "oneflow", "paddle", "tensorflow", "tinygrad", "warp"})  # fmt: skip
"""Libraries with tensors, modules and a backward of their own: a text that imports one and never says torch is about those."""


def is_about_torch(text: str, models: str = "") -> bool:
    """`models`: the folder of the user's own models of libraries."""
    return "torch" in text or is_about_torch_in_bytes(text.encode(errors="replace"), models)


def is_about_torch_in_bytes(data: bytes, models: str = "") -> bool:
    if TORCH in data:
        return True
    imported = {found.group(1).decode() for found in IMPORT.finditer(data)}
    if imported & OTHER_FRAMEWORKS:
        return False
    return BACKWARD in data or not imported.isdisjoint(
        _shipped() | (_listed(models) if models else frozenset())
    )


@cache
def _shipped() -> frozenset[str]:
    """The libraries that we have a model of which speaks of torch."""
    return frozenset(path.stem for path in SHIPPED.iterdir() if _speaks_of_torch(path))


def _listed(folder: str) -> frozenset[str]:
    """The libraries that the user has a model of; what is in the files is read elsewhere, with care."""
    try:
        return frozenset(Path(name).stem for name in os.listdir(folder))
    except OSError:
        return frozenset()


def _speaks_of_torch(path: Path) -> bool:
    files = [path] if path.suffix == ".py" else path.rglob("*.py")
    return any(TORCH in file.read_bytes() for file in files)
