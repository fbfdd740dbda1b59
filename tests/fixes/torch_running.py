"""Runs a text on torch, in this process and in a namespace of its own, and compares the gradients it ends with."""

from __future__ import annotations

import contextlib
import io
import random
import warnings
from typing import Any

import torch

from gradsight_dev.verify_fixtures import agree


def grads_of(text: str, path: str) -> dict[str, Any]:
    """The GRADS that a program sets; what it raises is raised."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(0)
    random.seed(0)
    namespace: dict[str, Any] = {"__name__": "__main__", "__file__": path}
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, path, "exec"), namespace)
        finally:
            torch.set_grad_enabled(True)
            torch.set_default_dtype(torch.float32)
    grads: dict[str, Any] = namespace.get("GRADS", {})
    return grads


def is_right(text: str, path: str, wanted: dict[str, Any]) -> str:
    """Empty when the text runs to its end with these gradients; otherwise what went wrong."""
    try:
        found = grads_of(text, path)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return "" if agree(found, wanted) else "the gradients differ"
