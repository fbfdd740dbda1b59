"""Chooses the case of a fact for a concrete call, the way a reader of the table does."""

from __future__ import annotations

from typing import Any

import torch

from gradsight.ops.fact import Case, Condition, OpFact


def bound(fact: OpFact, positional: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any]:
    """Argument values by parameter name, by the fact's own parameter list; defaults are filled in."""
    places = [name for name in fact.parameters if name not in fact.keyword_only]
    values: dict[str, Any] = {}
    for index, value in enumerate(positional):
        name = places[index]
        if name.startswith("*"):
            rest = positional[index:]
            packed = len(rest) == 1 and isinstance(rest[0], (list, tuple))
            values[name[1:]] = list(rest[0]) if packed else list(rest)
            break
        if name in fact.by_tensor and isinstance(value, torch.Tensor):
            name = fact.by_tensor[name]
        values[name] = value
    values.update({fact.synonyms.get(name, name): value for name, value in keywords.items()})
    return values


def fitting_case(fact: OpFact, values: dict[str, Any], options: dict[str, Any] | None = None) -> Case:
    """The first case whose conditions all hold."""
    defaults = {**fact.option_defaults, **fact.defaults}
    known = {**values, **(options or {})}
    for case in fact.cases:
        if all(_holds(condition, known, defaults) for condition in case.when):
            return case
    raise AssertionError(f"no case of {fact.name} fits")


def _holds(condition: Condition, known: dict[str, Any], defaults: dict[str, str]) -> bool:
    name, kind, wanted = condition.argument, condition.kind, condition.value
    value = known.get(name, _Missing)
    if value is _Missing:
        text = defaults.get(name, "None")
        value = _literal(text)
    if kind == "equals":
        return _same(value, wanted)
    if kind == "not":
        return not _same(value, wanted)
    if kind == "rank":
        return isinstance(value, torch.Tensor) and _rank_fits(value.dim(), wanted)
    if kind == "integral":
        return isinstance(value, torch.Tensor) and not (value.is_floating_point() or value.is_complex())
    return _kind_of(value, name) == kind


class _Missing:
    """Stands for an argument that was not given."""


def _literal(text: str) -> Any:
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None if text == "None" else text


def _same(value: Any, wanted: str) -> bool:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return repr(value) == wanted
    return isinstance(value, (int, float)) and repr(float(value)) == wanted


def _rank_fits(rank: int, wanted: str) -> bool:
    if wanted[0] in "<>":
        bound = int(wanted[1:])
        return rank < bound if wanted[0] == "<" else rank > bound
    return rank == int(wanted)


def _kind_of(value: Any, name: str) -> str:
    if isinstance(value, torch.Tensor):
        return "tensor"
    if name in ("index", "indices"):
        parts = value if isinstance(value, tuple) else (value,)
        gathers = any(isinstance(part, (torch.Tensor, list, bool)) for part in parts)
        return "indices" if gathers else "basic"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, (int, float, complex)):
        return "number"
    if isinstance(value, str):
        return "text"
    return "sequence" if isinstance(value, (list, tuple)) else "other"
