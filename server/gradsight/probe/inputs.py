"""Calls with made-up inputs, for a function that nothing in the file calls: small tensors of plausible shape.

What a parameter is for is read from its annotation, its default and its name; which sizes the layers of a class ask for
is read from their constructors.  Several calls are offered, the most plausible first: torch says which one fits.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradsight.model.finding import Finding
from gradsight.probe.minimal import Entry, Minimal

SMALL = 4
MOST_CALLS = 12
_COUNTS = frozenset(
    "n num size dim width height hidden features channels classes layers heads steps epochs seed k".split()
)
_SHAPES = ("2, {size}", "{size}", "2, 3, {size}", "2, {size}, 8, 8", "{size}, {size}")


def calls_for(minimal: Minimal, finding: Finding) -> list[str]:
    """Pieces of code that call the entry of a minimal program, and run backward on its result if it does not itself."""
    entry = minimal.entry
    if entry is None:
        return [""]
    has_torch = any(line.startswith("import torch") for line in minimal.lines)
    runs_backward = any(step.role == "needed" and step.path == finding.path for step in finding.related)
    found: list[str] = []
    for tensor in _tensors(entry):
        call = _call(entry, tensor, runs_backward)
        if call not in found:
            found.append(call)
    return [call if has_torch else f"import torch\n\n{call}" for call in found[:MOST_CALLS]]


def _tensors(entry: Entry) -> Iterator[str]:
    """Expressions for a tensor argument: as data for a module, as the result of an operation, and as whole numbers."""
    sizes = [*_sizes(entry), SMALL]
    for kind in ("torch.randn({})",) * (entry.owner is not None) + (
        "torch.randn({}, requires_grad=True) * 1",
    ):
        for size in dict.fromkeys(sizes):
            for shape in _SHAPES:
                yield kind.format(shape.format(size=size))
        yield "torch.zeros(2, 3, dtype=torch.long)"


def _sizes(entry: Entry) -> list[int]:
    """The sizes that layers of the class ask of their input, first come first."""
    sizes = []
    for node in ast.walk(entry.owner) if entry.owner is not None else ():
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            value = node.args[0].value
            if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 5000:
                sizes.append(value)
    return list(dict.fromkeys(sizes))[:3]


def _call(entry: Entry, tensor: str, runs_backward: bool) -> str:
    function, owner = entry.function, entry.owner
    lines = ["torch.manual_seed(0)"]
    if owner is None:
        return _run(lines, function.name, function, tensor, 0, runs_backward)
    methods = {
        part.name: part for part in owner.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    if function.name in ("__init__", "setup_context", "backward"):
        function = methods.get("forward", function)
    if any("Function" in ast.unparse(base) for base in owner.bases):
        return _run(lines, f"{owner.name}.apply", function, tensor, 1, runs_backward)
    subject = owner.name.lower()
    lines.append(f"{subject} = {owner.name}({_constructor(owner)})")
    if function.name == "__init__":
        return "\n".join(lines) + "\n"
    called = subject if function.name == "forward" else f"{subject}.{function.name}"
    return _run(lines, called, function, tensor, 1, runs_backward)


def _run(
    lines: list[str],
    called: str,
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    tensor: str,
    skip: int,
    runs_backward: bool,
) -> str:
    call = f"{called}({_arguments(function, tensor, skip)})"
    if runs_backward:
        return "\n".join([*lines, call]) + "\n"
    part = "[0]" if _returns_several(function) else ""
    return "\n".join([*lines, f"result = {call}", f"result{part}.sum().backward()"]) + "\n"


def _returns_several(function: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) for node in ast.walk(function)
    )


def _constructor(owner: ast.ClassDef) -> str:
    for part in owner.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            return _arguments(part, f"torch.randn({SMALL})", skip=1)
    return ""


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef, tensor: str, skip: int) -> str:
    """Values for the parameters that have no default, after those that are not ours to give."""
    parameters = [*function.args.posonlyargs, *function.args.args]
    without_default = parameters[: len(parameters) - len(function.args.defaults)][skip:]
    values = [_value(each, tensor) for each in without_default]
    keywords = [
        f"{each.arg}={_value(each, tensor)}"
        for each, default in zip(function.args.kwonlyargs, function.args.kw_defaults)
        if default is None
    ]
    return ", ".join([*values, *keywords])


def _value(parameter: ast.arg, tensor: str) -> str:
    annotation = ast.unparse(parameter.annotation) if parameter.annotation is not None else ""
    kind = annotation.rsplit(".", 1)[-1].split("[")[0]
    name = parameter.arg.lower()
    if kind in _BY_ANNOTATION:
        return _BY_ANNOTATION[kind]
    if kind in ("Tensor", "FloatTensor"):
        return tensor
    for word, value in _BY_NAME.items():
        if word in name.split("_"):
            return value
    if set(name.split("_")) & _COUNTS:
        return str(SMALL)
    return tensor


_BY_ANNOTATION = {
    "int": str(SMALL),
    "float": "0.5",
    "bool": "True",
    "str": "'x'",
    "Module": f"torch.nn.Linear({SMALL}, {SMALL})",
    "Linear": f"torch.nn.Linear({SMALL}, {SMALL})",
    "LongTensor": "torch.zeros(2, 3, dtype=torch.long)",
    "Optimizer": "torch.optim.SGD([torch.nn.Parameter(torch.randn(4))], lr=0.1)",
    "Callable": "(lambda value: value)",
}
_BY_NAME = {
    "model": f"torch.nn.Linear({SMALL}, {SMALL})",
    "net": f"torch.nn.Linear({SMALL}, {SMALL})",
    "network": f"torch.nn.Linear({SMALL}, {SMALL})",
    "layer": f"torch.nn.Linear({SMALL}, {SMALL})",
    "lr": "0.1",
    "dropout": "0.1",
    "rate": "0.5",
    "eps": "1e-5",
    "alpha": "0.5",
    "beta": "0.5",
    "scale": "0.5",
    "device": "'cpu'",
    "labels": "torch.zeros(2, dtype=torch.long)",
    "indices": "torch.zeros(2, dtype=torch.long)",
}
