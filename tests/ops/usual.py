"""Which case of a fact describes the plain call: every option at its default, a tensor where one is asked for."""

from __future__ import annotations

from gradsight.ops.fact import Case, Condition, OpFact


def usual_case(fact: OpFact) -> Case | None:
    """The first case that a call meets which leaves away what it may; a module is in training mode."""
    defaults = {"training": "True", **fact.option_defaults, **fact.defaults}
    return next((case for case in fact.cases if all(_holds(each, defaults) for each in case.when)), None)


def _holds(condition: Condition, defaults: dict[str, str]) -> bool:
    kind, default = condition.kind, defaults.get(condition.argument)
    if default is None:
        # A required argument: a tensor of the usual rank and dtype, an index of integers and slices.
        return kind in ("tensor", "basic", "not")
    if kind in ("equals", "not"):
        return (_spelled(default) == condition.value) == (kind == "equals")
    if default == "None":
        return kind == "none"
    if default[0] in "'\"":
        return kind == "text"
    if default[0] in "([":
        return kind == "sequence"
    return kind == "number" and default not in ("True", "False")


def _spelled(default: str) -> str:
    """A default as conditions write it: numbers as floats."""
    try:
        return repr(float(default))
    except ValueError:
        return default
