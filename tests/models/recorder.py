"""Records in which order a library calls forward, zero_grad, backward, step and hooks: the real one, or our model of it.

`python tests/models/recorder.py --models` executes every program of `programs/` with our models in place of the libraries
and prints what happened; without the option it does so with the libraries that are installed.  `--write` keeps that in
`orders.json`, `--check` compares with it.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import json
import logging
import os
import runpy
import sys
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ORDERS = HERE / "orders.json"
MODELS = HERE.parents[1] / "server" / "gradsight" / "models"
LOG: list[str] = []
LIBRARIES = "--models" not in sys.argv
"""Whether the real libraries are used, and not our models of them."""


def log(word: str) -> None:
    LOG.append(word)


def logs(*names: str) -> Any:
    """Class decorator: the methods of these names note that they were called, before they do what they do."""

    def decorate(cls: type) -> type:
        for name in names:
            setattr(cls, name, noting(name, getattr(cls, name)))
        return cls

    return decorate


def noting(name: str, method: Any) -> Any:
    def noted(*args: Any, **kwargs: Any) -> Any:
        log(name)
        return method(*args, **kwargs)

    return noted


def programs() -> list[str]:
    """All of them, or those that are named."""
    named = [word for word in sys.argv[1:] if not word.startswith("-")]
    found = [path.stem for path in (HERE / "programs").glob("*.py") if path.stem != "__init__"]
    # What parts of libraries leave behind in the process must not reach the trainers: those come first.
    return named or sorted(
        found, key=lambda name: (not name.startswith(("accelerate", "fabric", "lightning")), name)
    )


def record_all() -> dict[str, list[str]]:
    """What every program of an installed library does."""
    import torch

    whole = torch.Tensor.backward
    torch.Tensor.backward = noting("backward", whole)  # type: ignore[method-assign]
    orders = {}
    for name in programs():
        LOG.clear()
        torch.manual_seed(0)
        try:
            program = importlib.import_module(f"programs.{name}")
        except ModuleNotFoundError as problem:
            if problem.name is None or problem.name.startswith("programs"):
                raise
            continue
        with contextlib.redirect_stdout(sys.stderr):
            program.main()
        orders[name] = list(LOG)
    return orders


def versions(names: list[str]) -> dict[str, str]:
    """The pinned libraries that are installed here."""
    installed = {}
    for name in names:
        try:
            installed[name] = metadata.version(name).partition("+")[0]
        except metadata.PackageNotFoundError:
            continue
    return installed


def pinned() -> dict[str, str]:
    lines = (HERE / "requirements.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if "==" in line and not line.startswith("#")]
    return {name.strip(): version.strip() for name, version in pairs}


class Unmodelled:
    """Finds the modules that a model imports and that nobody has: whatever they give is unknown, and no tensor."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        own = not any(str(folder).startswith(str(MODELS)) for folder in path or ())
        if own or not name.rpartition(".")[2].startswith("_"):
            return None
        return importlib.machinery.ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        module.__getattr__ = Unknown().__getattr__


class Unknown:
    """Data of which nothing is known but that it carries no graph."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Unknown()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unknown()

    def __getitem__(self, index: Any) -> Any:
        return Unknown()

    def __iter__(self) -> Any:
        return iter([Unknown()])


def main() -> int:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    sys.modules["recorder"] = sys.modules["__main__"]
    sys.path.insert(0, str(HERE))
    if not LIBRARIES:
        sys.path.insert(0, str(MODELS))
        sys.meta_path.append(Unmodelled())  # type: ignore[arg-type]
        print(json.dumps(record_all()))
        return 0
    runpy.run_path(str(HERE / "at_start" / "sitecustomize.py"))
    found = {"versions": versions(list(pinned())), "orders": record_all()}
    if "--write" in sys.argv:
        ORDERS.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    if "--check" in sys.argv:
        kept = json.loads(ORDERS.read_text())
        wrong = [name for name, order in found["orders"].items() if kept["orders"].get(name) != order]
        missing = sorted(set(kept["orders"]) - set(found["orders"]))
        for name in wrong:
            print(f"{name}: {found['orders'][name]}\n  instead of {kept['orders'].get(name)}")
        print(
            f"{len(found['orders'])} programs under {found['versions']}; {len(wrong)} differ; not run: {missing}"
        )
        return 1 if wrong or missing or found["versions"] != kept["versions"] else 0
    print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
