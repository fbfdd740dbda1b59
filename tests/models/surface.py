"""What the models of libraries define, and whether the libraries have it: names at the same path, parameters of the same names.

    python tests/models/surface.py --write     in the environment that has the libraries
    python tests/models/surface.py --check     the same, and nothing is kept

Names with a leading underscore are our own.  What was found is kept in `surface.json`, which the ordinary tests compare with
the models: a model that was changed and not held against its library fails there.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import json
import logging
import os
import runpy
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
KEPT = HERE / "surface.json"
MODELS = HERE.parents[1] / "server" / "gradsight" / "models"
Surface = dict[str, dict[str, list[str]]]
PATCHING = ("fastai.callback.schedule",)
"""Modules that put methods into classes of their library."""
ASKED_BY_NAME = {"fastai.learner": "Callback."}
"""Classes of which a library asks for a method or an attribute by its name, without having one itself."""
OTHERWISE = {
    "diffusers.models": {
        f"ModelMixin.{name}" for name in ("from_config", "load_config", "register_to_config", "add_adapter")
    },
    "ignite.handlers": {"OutputHandler", "OptimizerParamsHandler"},
    "lightning.pytorch.trainer": {"Trainer.from_argparse_args", "Trainer.add_argparse_args"},
    "transformers.models": {"PreTrainedModel.from_config", "AutoModelForVision2Seq"},
}
"""Names that a library has elsewhere, in its older versions, or in classes beside this one."""


def surface() -> Surface:
    """The public names of every model by its module, each with the names of its parameters."""
    found: Surface = {}
    for path in sorted(MODELS.rglob("*.py")):
        parts = path.relative_to(MODELS).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(part.startswith("_") for part in parts):
            found[".".join(parts)] = dict(defined(ast.parse(path.read_text(encoding="utf-8"))))
    return found


def defined(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and is_public(node.name):
            yield node.name, parameters(node)
        elif isinstance(node, ast.ClassDef) and is_public(node.name):
            yield from members(node.name, node)
        elif isinstance(node, ast.Assign):
            of = classes.get(node.value.id) if isinstance(node.value, ast.Name) else None
            # A class of our own is an outline of all that have its name, whose methods differ.
            is_outline = of is None or not is_public(of.name)
            for target in node.targets:
                if isinstance(target, ast.Name) and is_public(target.id):
                    yield from [(target.id, [])] if of is None or is_outline else members(target.id, of)


def members(name: str, node: ast.ClassDef) -> Iterator[tuple[str, list[str]]]:
    """A class under one of its names, and its methods."""
    yield name, []
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef) and (
            is_public(inner.name) or inner.name in ("__init__", "__call__")
        ):
            yield f"{name}.{inner.name}", parameters(inner)[1:]


def is_public(name: str) -> bool:
    return not name.startswith("_")


def parameters(node: ast.FunctionDef) -> list[str]:
    """The names of what a function takes, but for `*args` and `**kwargs`; `self` stays the first of a method's."""
    if any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in node.decorator_list):
        return ["", *[one.arg for one in node.args.args]]
    return [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


def problems(found: Surface) -> Iterator[str]:
    """What a model says and its library does not."""
    for module, names in found.items():
        real = places(module)
        for name, given in names.items():
            if name.startswith(ASKED_BY_NAME.get(module, " ")) or is_otherwise(module, name):
                continue
            value = looked_up(real, name)
            if value is None:
                yield f"{module}: {name} is not there"
            elif given:
                yield from (f"{module}: {name} takes no {one}" for one in missing(value, given))


def is_otherwise(module: str, name: str) -> bool:
    known = OTHERWISE.get(module, set())
    return name in known or name.partition(".")[0] in known


def places(module: str) -> list[Any]:
    """The module of a library, and the packages around it, which have the names that most programs import."""
    found = []
    while module:
        with contextlib.suppress(ImportError):
            found.append(importlib.import_module(module))
        module = module.rpartition(".")[0]
    return found


def looked_up(real: list[Any], name: str) -> Any:
    for place in real:
        value = place
        for part in name.split("."):
            value = getattr(value, part, None)
        if value is not None:
            return value
    return None


def missing(value: Any, given: list[str]) -> list[str]:
    """The parameters that something real does not take; what takes any keyword takes them."""
    try:
        taken = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return []
    if any(one.kind is one.VAR_KEYWORD for one in taken.values()):
        return []
    return [one for one in given if one not in taken and not one.startswith("_")]


def main() -> int:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1")
    runpy.run_path(str(HERE / "at_start" / "sitecustomize.py"))
    for name in PATCHING:
        importlib.import_module(name)
    found = surface()
    wrong = list(problems(found))
    for line in wrong:
        print(line)
    print(f"{sum(map(len, found.values()))} names of {len(found)} modules; {len(wrong)} differ")
    if wrong:
        return 1
    if "--write" in sys.argv:
        KEPT.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    return 0 if json.loads(KEPT.read_text()) == found else 1


if __name__ == "__main__":
    raise SystemExit(main())
