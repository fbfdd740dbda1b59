"""What torch's own derivative formulas and operator schemas say: a second source, independent of running anything.

`derivatives.yaml` ships inside the wheel with torchgen's loader.  An input that exactly one derivative uses is saved only
if the argument of that derivative requires grad; any other saved input, and every saved output, is always kept.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass
class Formula:
    """Saved tensors of one aten overload: per saved argument who must require grad (empty = anyone)."""

    schema: str
    node: str
    arguments: list[str]
    differentiable: list[str]
    saved_inputs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    saved_outputs: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    result_differentiable: list[bool] = field(default_factory=list)


def load_formulas() -> tuple[dict[str, Formula], str]:
    """Formulas by schema name (`mul.Tensor`), and why there are none."""
    try:
        import torchgen
        from torchgen.packaged.autograd.load_derivatives import load_derivatives
    except ImportError as error:
        return {}, f"the derivative formulas cannot be read ({error})"
    folder = os.path.join(os.path.dirname(torchgen.__file__), "packaged")
    try:
        loaded, _ = load_derivatives(
            os.path.join(folder, "autograd", "derivatives.yaml"),
            os.path.join(folder, "ATen", "native", "native_functions.yaml"),
            os.path.join(folder, "ATen", "native", "tags.yaml"),
        )
    except Exception as error:
        return {}, f"the derivative formulas cannot be read ({error})"
    found = {}
    for by_key in loaded.values():
        info = by_key.get("Default") or next(iter(by_key.values()))
        formula = _formula(info)
        found[formula.schema] = formula
    return found, ""


def _formula(info: Any) -> Formula:
    function = info.func.func
    arguments = list(function.arguments.flat_non_out)
    names = [each.name for each in arguments]
    differentiable = [name for name in names if any(name in each.var_names for each in info.derivatives)]
    lists = any("Tensor[]" in str(each.type) or "Tensor?[]" in str(each.type) for each in arguments)
    formula = Formula(str(function.name), str(info.op or ""), names, differentiable)
    for derivative in info.derivatives:
        for saved in derivative.saved_inputs:
            name = _name(saved)
            if name not in names or not _is_tensor(saved):
                continue
            users = [each for each in info.derivatives if saved in each.saved_inputs]
            guarded = (
                not lists
                and "backward" not in info.name
                and len(differentiable) > 1
                and "optional" not in str(saved.nctype.type).lower()
                and len(users) == 1
                and len(users[0].var_names) == 1
            )
            needs = (users[0].var_names[0],) if guarded else ()
            formula.saved_inputs[name] = needs if name not in formula.saved_inputs else ()
        for saved in derivative.saved_outputs:
            if _is_tensor(saved):
                formula.saved_outputs.append(_name(saved))
    formula.saved_outputs = sorted(set(formula.saved_outputs))
    formula.results = [each.name or "result" for each in function.returns]
    if len(formula.results) > 1 and formula.results[0] == "result":
        formula.results = [f"result{index}" for index in range(len(formula.results))]
    told = info.output_differentiability
    formula.result_differentiable = list(told) if told else [True] * len(formula.results)
    return formula


def _name(saved: Any) -> str:
    name = saved.nctype.name
    return name if isinstance(name, str) else str(name.name)


def _is_tensor(saved: Any) -> bool:
    text = str(saved.nctype.type)
    return "ensor" in text and "eometry" not in text and "ptions" not in text


def formula_fact(
    name: str, parameters: dict[str, Any], formulas: dict[str, Formula]
) -> dict[str, Any] | None:
    """A fact for a callable that cannot be run here, from the formula of the aten function of the same name."""
    short = name.rsplit(".", 1)[-1]
    chosen = [each for schema, each in formulas.items() if schema.split(".")[0] == short]
    if not chosen:
        return None
    formula = chosen[0]
    first = parameters["parameters"][0] if parameters["parameters"] else ""

    def spell(argument: str) -> str:
        return first if argument == "self" else argument

    saves = [
        [spell(what), [spell(each) for each in needs], "always"]
        for what, needs in formula.saved_inputs.items()
    ]
    if any(save[0] not in parameters["parameters"] for save in saves):
        return None
    several = len(formula.results) > 1
    for result in formula.saved_outputs:
        if result in formula.results:
            saves.append([f"result.{formula.results.index(result)}" if several else "result", [], "always"])
    outputs: list[dict[str, Any]] = [
        {} if differentiable else {"gradient": "none", "dtype": "any"}
        for differentiable in formula.result_differentiable
    ]
    case: dict[str, Any] = {"outputs": outputs, "returns": "tuple" if several else "tensor"}
    if saves:
        case["saves"] = saves
    else:
        case["holds_saved"] = "never"
    return {**parameters, "name": name, "origin": "formula", "cases": [case]}


@dataclass
class DeclaredMemory:
    """What the aten schemas of one name declare about memory: argument names that are written or handed out."""

    writes: set[str] = field(default_factory=set)
    aliases: set[str] = field(default_factory=set)


def declared_memory() -> dict[str, DeclaredMemory]:
    """Alias annotations of all aten overloads, `out=` forms left out, by function name."""
    found: dict[str, DeclaredMemory] = {}
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith("aten::"):
            continue
        # TorchScript's own operators on Python lists share names with tensor operators.
        tensors = [each for each in schema.arguments if str(each.type) in ("Tensor", "Optional[Tensor]")]
        marked = [each for each in tensors if each.alias_info is not None]
        written = [each for each in marked if each.alias_info.is_write]
        if not tensors or (written and all(each.kwarg_only for each in written)):
            continue
        declared = found.setdefault(schema.name[6:], DeclaredMemory())
        declared.writes.update(each.name for each in written)
        if any(each.alias_info is not None for each in schema.returns):
            declared.aliases.update(each.name for each in marked if not each.alias_info.is_write)
    return found
