"""Lets torchvision be imported beside a torch for which its compiled operators were not built.

`import torchvision` then fails with "operator torchvision::nms does not exist": it describes operators to torch that nobody
has defined.  Their schemas are defined here, just before; what needs the operators themselves is left out of the programs.
Python imports this file when it starts with this folder on its PYTHONPATH.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
KEPT: list[Any] = []
"""A library of torch's lives as long as its object."""


class BeforeTorchvision:
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "torchvision" and not KEPT:
            KEPT.append(None)
            define_operators()


def define_operators() -> None:
    import torch

    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None or "gradsight" in found.origin:
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    KEPT.append(library)
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            library.define(name + SCHEMA)


sys.meta_path.insert(0, BeforeTorchvision())  # type: ignore[arg-type]
