"""Calls with made-up inputs, for a function that nothing in the file calls: small tensors of plausible shape.

A call is tried, and what torch says about it makes the next one better: see `feedback`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeGuard

from gradsight.model.finding import Finding
from gradsight.probe.feedback import revised
from gradsight.probe.guesses import SMALL, Guess, defaults_of, guess, numbers_in, parameters_of
from gradsight.probe.minimal import EntryPoint, Minimal
from gradsight.rules import rule_of

MOST_LESSONS = 6
_BINDS_TORCH = re.compile(r"import (?:[\w.]+, *)*torch(?:\.[\w.]+)?\s*(?:,|$|#)")
# What layers take, for a class that is one of them and has no constructor of its own.
_OF_LAYERS = {"Linear": "4, 4", "Conv1d": "4, 4, 3", "Conv2d": "4, 4, 3", "Embedding": "4, 4", "GRU": "4, 4", "LSTM": "4, 4", "Bilinear": "4, 4, 4"}  # fmt: skip
# What the input of a layer looks like behind its batch: extents before the last, and where the size of the layer goes.
_RANKS = {"Linear": 2, "LayerNorm": 2, "BatchNorm1d": 2, "GRU": 3, "LSTM": 3, "RNN": 3, "TransformerEncoderLayer": 3, "MultiheadAttention": 3, "Conv1d": 3, "Conv2d": 4, "BatchNorm2d": 4, "Conv3d": 5}  # fmt: skip
_CHANNELS_FIRST = ("Conv1d", "Conv2d", "Conv3d", "BatchNorm2d")


@dataclass(frozen=True, slots=True)
class MadeUpCall:
    """A call of an entry: what the constructor and the function are given; None when nothing has to be called."""

    entry: EntryPoint | None
    made_of: tuple[tuple[str, Guess], ...] = ()
    given: tuple[tuple[str, Guess], ...] = ()
    runs_backward: bool = False
    base: str = ""
    has_torch: bool = True
    trains: bool = False
    """Whether the result is trained on for two steps."""
    gives_tensor: bool = True
    """Whether backward can start from the result."""

    def text(self) -> str:
        """The call as Python, with the backward that it needs."""
        if self.entry is None:
            return ""
        body = _body(self, self.entry)
        imports = []
        if "types.SimpleNamespace" in body:
            imports.append("import types")
        if not self.has_torch:
            imports.append("import torch")
        return ("\n".join(imports) + "\n\n" if imports else "") + body

    def after(self, message: str) -> MadeUpCall | None:
        """The call that torch's complaint asks for; None when it says nothing about the inputs."""
        if self.gives_tensor and re.search(
            r"'(float|int|NoneType|list|dict)' object has no attribute 'sum'", message
        ):
            return replace(self, gives_tensor=False)
        better = revised(dict(self.given), message)
        if better is not None:
            return replace(self, given=tuple(better.items()))
        better = revised(dict(self.made_of), message)
        return None if better is None else replace(self, made_of=tuple(better.items()))


def calls_for(minimal: Minimal, finding: Finding) -> list[MadeUpCall]:
    """Calls to begin with, the most plausible first."""
    entry = minimal.entry
    if entry is None:
        return [MadeUpCall(None)]
    return list(dict.fromkeys(_starts(minimal, entry, finding)))


def _starts(minimal: Minimal, entry: EntryPoint, finding: Finding) -> Iterator[MadeUpCall]:
    """With equal numbers and with different ones; as data, and as the result of an operation."""
    own = [step.span.line for step in finding.related if step.path == finding.path and step.role == "written"]
    needed = [step for step in finding.related if step.role == "needed" and step.path == finding.path]
    has_torch = any(_BINDS_TORCH.match(line) for line in minimal.lines)
    trains = rule_of(finding.code).needs_training and not needed
    function, skip = _called(entry)
    runs_backward = bool(needed) or any(
        _is_backward(node) and node.lineno in own for node in ast.walk(function)
    )
    constructor, base = _constructor(minimal, entry)
    for needs_grad in (entry.owner is None, entry.owner is not None):
        given = {
            each.arg: guess(each, function, False, needs_grad) for each, _ in parameters_of(function, skip)
        }
        made_of = (
            {each.arg: guess(each, constructor, True) for each, _ in parameters_of(constructor, 1)}
            if constructor is not None
            else {}
        )
        for distinct in (False, True):
            numbered = _numbered(made_of, distinct)
            fitted = _fitted(given, function, entry, constructor, numbered)
            yield MadeUpCall(
                entry, tuple(numbered.items()), tuple(fitted.items()), runs_backward, base, has_torch, trains
            )


def _is_backward(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward"
    )


def _called(entry: EntryPoint) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, int]:
    """The function that has to be called to come to the entry, and how many of its parameters are not ours to give."""
    function, owner = entry.function, entry.owner
    if owner is None:
        return function, 0
    if function.name in ("__init__", "setup_context", "backward"):
        function = _methods(owner).get("forward", function)
    is_static = any(
        isinstance(each, ast.Name) and each.id == "staticmethod" for each in function.decorator_list
    )
    return function, 0 if is_static and not _is_custom_function(owner) else 1


def _constructor(
    minimal: Minimal, entry: EntryPoint
) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef | None, str]:
    """The constructor of a class, its own or that of a base in the file; or what a layer of torch takes."""
    owner = entry.owner
    classes = {
        each.name: each for each in ast.parse("\n".join(minimal.lines)).body if isinstance(each, ast.ClassDef)
    }
    while owner is not None:
        if "__init__" in _methods(owner):
            return _methods(owner)["__init__"], ""
        names = [ast.unparse(base).rsplit(".", 1)[-1] for base in owner.bases]
        layer = next((_OF_LAYERS[name] for name in names if name in _OF_LAYERS), "")
        if layer:
            return None, layer
        owner = next((classes[name] for name in names if name in classes), None)
    return None, ""


def _numbered(made_of: dict[str, Guess], distinct: bool) -> dict[str, Guess]:
    """The numbers of a constructor: all the same, or each twice the one before."""
    result, number = {}, SMALL
    for name, each in made_of.items():
        result[name] = each.with_number(number)
        if distinct and each.kind == "number":
            number *= 2
    return result


def _fitted(
    given: dict[str, Guess],
    function: ast.AST,
    entry: EntryPoint,
    constructor: ast.FunctionDef | ast.AsyncFunctionDef | None,
    made_of: dict[str, Guess],
) -> dict[str, Guess]:
    """Tensors as wide as the first layer of the class asks for, and of the rank it takes."""
    if constructor is None:
        return given
    known = {name: int(each.literal) for name, each in made_of.items() if each.kind == "number"}
    known |= {name: value for name, value in defaults_of(constructor).items() if name not in known}
    layers = [(name, sizes[0]) for name, sizes in numbers_in(constructor, known) if name in _RANKS and sizes]
    first = next((name for name, each in given.items() if each.kind == "tensor"), None)
    if not layers or first is None:
        return given
    name, size = layers[0]
    shape = given[first].shape
    rank = max(len(shape), _RANKS[name])
    middle = (3,) if rank == 3 else (8,) * (rank - 2)
    shape = (shape[0], size, *middle) if name in _CHANNELS_FIRST else (shape[0], *middle, size)
    return {**given, first: replace(given[first], shape=shape)}


def _body(call: MadeUpCall, entry: EntryPoint) -> str:
    function, skip = _called(entry)
    lines = ["torch.manual_seed(0)"]
    owner = entry.owner
    if owner is None:
        return _run(lines, function.name, function, skip, call)
    if _is_custom_function(owner):
        return _run(lines, f"{owner.name}.apply", function, skip, call)
    subject = _variable(owner.name)
    made_of = call.base or ", ".join(value.written() for _, value in call.made_of)
    lines.append(f"{subject} = {owner.name}({made_of})")
    if function.name == "__init__":
        return "\n".join(lines) + "\n"
    called = subject if function.name == "forward" else f"{subject}.{function.name}"
    return _run(lines, called, function, skip, call)


def _run(
    lines: list[str],
    called: str,
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    skip: int,
    call: MadeUpCall,
) -> str:
    given = dict(call.given)
    arguments = [
        f"{each.arg}={given[each.arg].written()}" if is_named else given[each.arg].written()
        for each, is_named in parameters_of(function, skip)
    ]
    text = f"{called}({', '.join(arguments)})"
    if call.runs_backward:
        return "\n".join([*lines, text]) + "\n"
    if not call.gives_tensor:
        later = "probe = torch.ones(3, requires_grad=True)\n(probe * 2).sum().backward()"
        return "\n".join([*lines, text, later]) + "\n"
    part = "[0]" if _returns_several(function) else ""
    if call.trains and lines[1:] and function.name == "forward":
        return "\n".join([*lines, *_training(called, text, part)]) + "\n"
    return "\n".join([*lines, f"result = {text}", f"result{part}.sum().backward()"]) + "\n"


def _training(model: str, text: str, part: str) -> list[str]:
    """Two steps, so that what stays the same and what does not can be seen."""
    return [
        f"optimizer = torch.optim.SGD({model}.parameters(), lr=0.1)",
        "for _ in range(2):",
        "    optimizer.zero_grad()",
        f"    result = {text}",
        f"    result{part}.sum().backward()",
        "    optimizer.step()",
    ]


def _returns_several(function: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) for node in ast.walk(function)
    )


def _variable(name: str) -> str:
    """A name for an instance of a class: `self_attention` for `SelfAttention`."""
    pieces = [
        "_" + each.lower() if each.isupper() and at and not name[at - 1].isupper() else each.lower()
        for at, each in enumerate(name)
    ]
    return "".join(pieces).strip("_")


def _methods(owner: ast.ClassDef) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    return {
        part.name: part for part in owner.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def _is_custom_function(owner: ast.ClassDef) -> bool:
    return any(ast.unparse(base).rsplit(".", 1)[-1] == "Function" for base in owner.bases)
