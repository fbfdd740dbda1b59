"""Writes the observations of an operator down as cases: plain dictionaries in the words of `gradsight.ops.fact`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from gradsight.agent.facts.learn import (
    Defaults,
    Group,
    groups_of,
    look_without_numbers,
    shared_shapes,
    told_atoms,
)
from gradsight.agent.facts.measure import Atom, MeasuredCall

CaseData = dict[str, Any]


def cases_of(observations: Sequence[MeasuredCall], defaults: Defaults) -> list[CaseData]:
    """The decision list of an operator, most special case first; fields with default values are left away.

    `defaults` are the arguments and options of a call that leaves everything away.
    """
    as_sequence = _is_sequence(observations)
    prepared = [
        _merged_results(each) if as_sequence and each.returns == "tuple" else each for each in observations
    ]
    for each in prepared:
        each.hard["returns",] = each.returns if not (as_sequence and each.returns == "tuple") else "sequence"
        each.hard["results",] = each.results
    cases: list[CaseData] = []
    for group in groups_of(prepared, defaults):
        case = _case(group)
        if cases and _without_conditions(cases[-1]) == _without_conditions(case) and not group.conditions:
            cases.pop()
        cases.append(case)
    return cases


def _is_sequence(observations: Sequence[MeasuredCall]) -> bool:
    """Tuples of different length come out: `split`, `unbind`."""
    lengths: dict[tuple[object, ...], int] = {}
    for each in observations:
        if each.returns != "tuple":
            continue
        if lengths.setdefault(look_without_numbers(each), each.length) != each.length or each.length > 6:
            return True
    return False


def _merged_results(seen: MeasuredCall) -> MeasuredCall:
    """All results of a sequence told as one."""
    merged = MeasuredCall(
        dict(seen.features),
        ranks=seen.ranks,
        integral=seen.integral,
        usual=seen.usual,
        returns="sequence",
        results=1,
        arguments=seen.arguments,
        checks=seen.checks,
    )
    merged.disagreements = seen.disagreements
    gathered: dict[Atom, list[Hashable]] = {}
    for atom, value in seen.hard.items():
        renamed = tuple("result" if str(part).startswith("result.") else part for part in atom)
        gathered.setdefault(renamed, []).append(value)
    for atom, values in gathered.items():
        if atom[0] in ("alias", "same"):
            merged.hard[atom] = values[0] if len(set(values)) == 1 else ""
        elif atom[0] == "linked":
            merged.hard[atom] = all(values)
        elif len(values) > 1:
            merged.hard[atom] = any(values)
        else:
            merged.hard[atom] = values[0]
    if seen.dtypes:
        kinds = set(seen.dtypes.values())
        merged.dtypes["result"] = next(iter(kinds)) if len(kinds) == 1 else ("any", "")
    for (_, key), is_zero in seen.zero.items():
        merged.zero["result", key] = merged.zero.get(("result", key), True) and is_zero
    return merged


def _without_conditions(case: CaseData) -> CaseData:
    return {key: value for key, value in case.items() if key != "when"}


def _case(group: Group) -> CaseData:
    members = group.members
    table = _Values(members)
    strided = _Values([each for each in members if not each.usual], everything=True)
    remarks = _Values(members, everything=True)
    case: CaseData = {}
    if group.conditions:
        case["when"] = [list(condition) for condition in group.conditions]
    _put(case, "saves", _saves(table, strided, remarks))
    if len({each.results for each in members}) == 1:
        _put(case, "outputs", _outputs(members, table))
    _put(case, "writes", sorted(key for key in table.keys("writes") if table.all("writes", key)))
    _put(case, "may_write", sorted(key for key in table.keys("writes") if table.mixed("writes", key)))
    _put(case, "quiet", sorted(key for key in table.keys("quiet") if table.any("quiet", key)))
    _put(case, "refuses", sorted(key for key in table.keys("refuses") if table.all("refuses", key)))
    if any(table.any("leaf_write", key) for key in table.keys("leaf_write")):
        case["no_grad"] = True
    returns = {str(each.hard["returns",]) for each in members}
    settled = len(returns) == 1 and len({each.results for each in members}) == 1
    case["returns"] = next(iter(returns)) if settled else "object"
    structures = {each.structure for each in members}
    if len(structures) == 1 and structures != {""}:
        case["structure"] = next(iter(structures))
    _tell_held(case, table)
    return case


def _put(case: CaseData, key: str, value: Any) -> None:
    if value:
        case[key] = value


class _Values:
    """Values of hard atoms over the members of a group."""

    def __init__(self, members: Sequence[MeasuredCall], everything: bool = False) -> None:
        self._values: dict[Atom, list[Hashable]] = {}
        for each in members:
            for atom, value in each.hard.items() if everything else told_atoms(each):
                self._values.setdefault(atom, []).append(value)

    def keys(self, kind: str) -> list[str]:
        return sorted({str(atom[1]) for atom in self._values if atom[0] == kind})

    def relations(self, kind: str, name: str) -> list[str]:
        return sorted({str(atom[2]) for atom in self._values if atom[0] == kind and atom[1] == name})

    def all(self, *atom: str) -> bool:
        values = self._values.get(atom, [False])
        return all(values) and "mixed" not in values

    def any(self, *atom: str) -> bool:
        return any(self._values.get(atom, [False]))

    def mixed(self, *atom: str) -> bool:
        return self.any(*atom) and not self.all(*atom)

    def distinct(self, *atom: str) -> set[Hashable]:
        return set(self._values.get(atom, []))


def _saves(table: _Values, strided: _Values, remarks: _Values) -> list[list[Any]]:
    """`[what, needs, when, contiguous]`; the last is told only where another layout makes torch keep a copy."""
    found: list[list[Any]] = []
    for what in table.keys("saved"):
        relations = table.relations("saved", what)
        surely = [each for each in relations if table.all("saved", what, each)]
        maybe = [each for each in relations if table.mixed("saved", what, each)]
        if "more" in table.distinct("odd", what):
            maybe = maybe or relations
        if "fewer" in table.distinct("odd", what):
            maybe, surely = sorted({*maybe, *surely}), []
        spelled = [_relation(what, each) for each in surely]
        if surely:
            found.append([what, [] if len(surely) == len(relations) else spelled, "always"])
            if any(False in strided.distinct("saved", what, each) for each in surely):
                found[-1].append("contiguous")
            if remarks.distinct("unnoticed", what) == {True}:
                found[-1].append("unnoticed")
        if maybe:
            everything = len(maybe) == len(relations)
            found.append([what, [] if everything else [_relation(what, each) for each in maybe], "sometimes"])
    return found


def _relation(what: str, relation: str) -> str:
    return f"{what}:{relation}" if relation in ("itself", "others") else relation


def _outputs(members: Sequence[MeasuredCall], table: _Values) -> list[dict[str, Any]]:
    names = sorted({name for each in members for name in each.dtypes}, key=_result_order)
    shapes = shared_shapes(members)
    return [_output(name, members, table, shapes.get(name, set())) for name in names]


def _result_order(name: str) -> int:
    return int(name.split(".")[1]) if "." in name else 0


def _output(name: str, members: Sequence[MeasuredCall], table: _Values, shapes: set[str]) -> dict[str, Any]:
    output = {**_gradient(name, members, table), **_alias(name, table)}
    _tell_dtype(output, [each.dtypes[name] for each in members if name in each.dtypes])
    shape = _preferred_shape(shapes, members, output.get("same") == "always")
    if shape:
        output["shape"] = shape
    return output


def _gradient(name: str, members: Sequence[MeasuredCall], table: _Values) -> dict[str, Any]:
    """Whether a result has a gradient, and from which arguments it flows, is zero or is not defined."""
    output: dict[str, Any] = {}
    sources = table.relations("grad", name)
    flowing = [each for each in sources if table.any("grad", name, each)]
    zero = [each for each in flowing if _is_zero(name, each, members)]
    undefined = [each for each in flowing if table.any("undefined", name, each)]
    if not flowing:
        return {"gradient": "none"}
    if undefined == flowing:
        output["gradient"] = "undefined"
    elif zero == flowing:
        output["gradient"] = "zero"
    elif zero:
        output["zero_for"] = zero
    if undefined and undefined != flowing:
        output["undefined_for"] = undefined
    if flowing != sources:
        output["needs"] = flowing
    surely = any(table.all("grad", name, each) for each in flowing)
    if not surely and not _many(flowing, name, table):
        output["flows"] = "sometimes"
    return output


def _is_zero(name: str, source: str, members: Sequence[MeasuredCall]) -> bool:
    """Whether the gradient from a source was looked at, and was zero in every call."""
    seen = [each.zero[name, source] for each in members if (name, source) in each.zero]
    return bool(seen) and all(seen)


def _alias(name: str, table: _Values) -> dict[str, Any]:
    """Whose memory a result shares, and how."""
    aliases = {str(each) for each in table.distinct("alias", name)}
    if not aliases - {""}:
        return {}
    output: dict[str, Any] = {
        "alias": sorted(aliases - {""})[0],
        "aliased": "sometimes" if len(aliases) > 1 else "always",
    }
    same = {str(each) for each in table.distinct("same", name)}
    if same - {""}:
        output["same"] = "sometimes" if len(same) > 1 else "always"
    if table.distinct("linked", name) == {False}:
        output["shares_version"] = False
    if table.any("many", name):
        output["one_of_many"] = True
    if table.any("overlap", name):
        output["overlapping"] = True
    return output


def _many(flowing: list[str], name: str, table: _Values) -> bool:
    """Several tensors in one parameter: each result hangs on one of them."""
    return any("mixed" in table.distinct("grad", name, each) for each in flowing)


def _tell_dtype(output: dict[str, Any], kinds: list[tuple[str, str]]) -> None:
    classes = {kind for kind, _ in kinds}
    exact = {name for _, name in kinds}
    if classes == {"same", "float"}:
        classes = {"same"}
    kind = next(iter(classes)) if len(classes) == 1 else "any"
    if kind != "same":
        output["dtype"] = kind
    if len(exact) == 1 and exact != {""} and kind not in ("bool", "same"):
        output["dtype_name"] = next(iter(exact))


def _preferred_shape(shapes: set[str], members: Sequence[MeasuredCall], is_argument: bool) -> str:
    likes = sorted(rule for rule in shapes if rule.startswith("like:"))
    several = any(sum("." not in place for place in each.ranks) > 1 for each in members)
    reducing = any(each.features.get("dim", ("none", ""))[0] != "none" for each in members)
    if not likes and "reduce" in shapes and reducing:
        return "reduce"
    if not likes and "scalar" in shapes:
        return "scalar"
    if several and "broadcast" in shapes and not is_argument:
        return "broadcast"
    for place in members[0].ranks:
        if f"like:{place}" in likes:
            return f"like:{place}"
    if likes:
        return likes[0]
    return "broadcast" if "broadcast" in shapes else ""


def _tell_held(case: CaseData, table: _Values) -> None:
    sources = table.keys("held")
    surely = [each for each in sources if table.all("held", each)]
    if not sources:
        case["holds_saved"] = "never"
    elif any(table.mixed("held", each) for each in sources):
        case["holds_saved"] = "sometimes"
    elif not surely:
        case["holds_saved"] = "never"
    elif surely != sources:
        case["holds_needs"] = surely
