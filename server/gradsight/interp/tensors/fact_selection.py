"""Which fact applies to a call: binding arguments, and the first case whose conditions hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gradsight.interp.tensors.einsum import permutation_of
from gradsight.interp.tensors.facts_floor import FactsFloor
from gradsight.model.sites import Syntax
from gradsight.model.tensors import Shape, Tensor
from gradsight.model.trace import CaseSelected
from gradsight.model.values import MISSING, Array, Number, Seq, Slice, Unknown, Value, is_constant
from gradsight.ops.fact import Case, Condition, OpFact, Output, Save, names_classes, takes_no_graph

PLAIN = Output()
PLAIN_CASE = Case(outputs=(PLAIN,), holds_saved="sometimes")


class CaseSelection(FactsFloor):
    """From an operator's name to what it does in this call."""

    def apply_operator(
        self,
        name: str,
        args: list[Value],
        kwargs: dict[str, Value],
        node: Syntax,
        settings: dict[str, Value] | None = None,
    ) -> Value:
        """Call the operator `name` (as the fact table spells it)."""
        if name == "torch.einsum" and len(args) == 2 and isinstance(args[0], str):
            order = permutation_of(args[0]) if isinstance(args[1], Tensor) else None
            if order is not None:
                name, args = "Tensor.permute", [args[1], *order]
        fact = self.path.table.find(name)
        if fact is None:
            return self.nn.unknown_result(f"no fact about {name}", args, kwargs, node)
        bound = bind(fact, args, kwargs)
        case, certain = self.select_case(fact, bound, settings)
        return self.autograd.record(short_name(name), case, bound, node, certain)

    def records_given(self, name: str, given: list[Value]) -> bool:
        """Whether a call that makes a tensor is given one, and torch records it: `torch.normal(mean, std)`."""
        fact = self.path.table.find(name)
        return (
            fact is not None
            and any(isinstance(value, Tensor) for value in given)
            and any(output.gradient != "none" for case in fact.cases for output in case.outputs)
        )

    def select_case(
        self, fact: OpFact, bound: dict[str, Value], settings: dict[str, Value] | None = None
    ) -> tuple[Case, bool]:
        """The first case whose conditions hold; uncertain if a condition before it cannot be told."""
        case, certain = self.first_case(fact, bound, settings)
        if self.path.is_watched:
            self.path.tell(CaseSelected(fact, case, certain))
        return case, certain

    def first_case(
        self, fact: OpFact, bound: dict[str, Value], settings: dict[str, Value] | None
    ) -> tuple[Case, bool]:
        """The first case that holds.

        A case for a number of dimensions that is not known is passed over, and what it does not keep is not sure to be kept.
        So is one for an option that is not known, where all that it does otherwise is to keep something else.
        """
        passed: list[Case] = []
        undecided: list[Case] = []
        for case in fact.cases:
            held = [self.condition_holds(condition, bound, fact, settings) for condition in case.when]
            if all(held):
                if not all(differs_in_saves(case, other) for other in undecided):
                    return kept_by_all(case, passed) if passed else case, False
                for other in undecided:
                    case = certainly_kept(case, other)
                return kept_by_all(case, passed) if passed else case, True
            if False not in held:
                open_ones = [one.kind for one, verdict in zip(case.when, held) if verdict is None]
                if all(kind == "rank" for kind in open_ones):
                    passed.append(case)
                else:
                    undecided.append(case)
        if fact.cases:
            return fact.cases[-1], False
        return PLAIN_CASE, False

    def condition_holds(
        self, condition: Condition, bound: dict[str, Value], fact: OpFact, settings: dict[str, Value] | None
    ) -> bool | None:
        name = condition.argument
        kind = condition.kind
        if settings is not None and name in settings:
            value = settings[name]
        elif name in bound:
            value = bound[name]
        else:
            default = fact.defaults.get(name, fact.option_defaults.get(name, "None"))
            return default_fits(default, kind, condition.value)
        if isinstance(value, Unknown) and self.path.is_assumed_none(value):
            return default_fits("None", kind, condition.value)
        if kind in ("equals", "not"):
            if not is_constant(value):
                if isinstance(value, (Unknown, Number)):
                    return None
                return kind == "not"
            same = spelled(value) == condition.value or repr(value) == condition.value
            return same if kind == "equals" else not same
        if isinstance(value, Unknown):
            if value.tensor is not None:
                value = value.tensor
            elif not value.hint:
                return None
            else:
                return kind == value.hint or (kind == "number" and value.hint == "bool")
        if kind == "tensor":
            return isinstance(value, Tensor)
        if kind == "number":
            return isinstance(value, (int, float, complex, Number)) and value is not None
        if kind == "none":
            return value is None
        if kind == "sequence":
            return isinstance(value, (Seq, range))
        if kind == "text":
            return isinstance(value, str)
        if kind == "integral":
            return isinstance(value, Tensor) and value.dtype in ("int", "bool")
        if kind == "rank":
            return rank_fits(value.shape, condition.value) if isinstance(value, Tensor) else False
        if kind in ("basic", "indices"):
            basic = is_basic_index(value)
            return None if basic is None else basic == (kind == "basic")
        return None


def bind(fact: OpFact, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
    """Arguments by parameter name; what does not fit the signature keeps a name of its own."""
    bound: dict[str, Any] = {}
    parameters = fact.parameters
    for index, value in enumerate(args):
        name = parameters[index] if index < len(parameters) else f"*{index}"
        if name.startswith("*") and index < len(parameters):
            rest = args[index:]
            bound[name[1:]] = (
                rest[0] if len(rest) == 1 and not isinstance(rest[0], Tensor) else Seq("tuple", rest)
            )
            break
        if name in fact.by_tensor and isinstance(value, Tensor):
            name = fact.by_tensor[name]
        bound[name] = value
    for name, value in kwargs.items():
        bound[fact.synonyms.get(name, name)] = value
    return bound


def default_fits(default: str, kind: str, value: str) -> bool | None:
    """Whether an omitted argument meets a condition, told by its default as Python writes it."""
    if kind == "equals":
        return default == value or numeric(default) == value
    if kind == "not":
        return not (default == value or numeric(default) == value)
    if kind == "none":
        return default == "None"
    if kind == "number":
        return default != "None" and not default.startswith(("'", "(", "["))
    if kind == "text":
        return default.startswith("'")
    if kind == "sequence":
        return default.startswith(("(", "["))
    return False


def numeric(text: str) -> str:
    """A number as conditions spell it."""
    try:
        return repr(float(text))
    except ValueError:
        return text


def spelled(value: Value) -> str:
    """A constant as conditions spell it."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(float(value))
    return repr(value)


def kept_by_all(case: Case, passed: list[Case]) -> Case:
    """The case, keeping for sure only what those that were passed over keep as well."""
    unsure = {
        save.what
        for save in case.saves
        if any(save.what not in (other.what for other in unusual.saves) for unusual in passed)
    }
    if not unsure:
        return case
    saves = (replace(save, when="sometimes") if save.what in unsure else save for save in case.saves)
    return replace(case, saves=tuple(saves))


def differs_in_saves(case: Case, other: Case) -> bool:
    """Whether two cases do the same but for what they keep; what one of them refuses never comes to that."""
    return replace(case, when=(), saves=(), refuses=()) == replace(other, when=(), saves=(), refuses=())


def certainly_kept(case: Case, other: Case) -> Case:
    """The case, keeping for sure only what another one keeps at least as surely."""
    surely = {(save.what, save.noticed): save for save in other.saves if save.when == "always"}

    def is_sure(save: Save) -> bool:
        same = surely.get((save.what, save.noticed))
        return (
            same is not None and same.needs in ((), save.needs) and (save.contiguous or not same.contiguous)
        )

    saves = (save if is_sure(save) else replace(save, when="sometimes") for save in case.saves)
    return replace(case, saves=tuple(saves))


def takes(method: OpFact, count: int) -> bool:
    """Whether a method of tensors can be called with so many arguments, one at least."""
    if method.parameters == ("self",) and not method.options:
        return False
    given_by_all = {*method.defaults, *method.keyword_only}
    wanted = [one for one in method.parameters[1:] if one not in given_by_all]
    return count >= len(wanted) or any(one.startswith("*") for one in method.parameters)


def rank_fits(shape: Shape, wanted: str) -> bool | None:
    """Whether the number of dimensions meets a condition, or None where it is not known."""
    if shape is None:
        return None
    rank = len(shape)
    if wanted.startswith("<"):
        return rank < int(wanted[1:])
    if wanted.startswith(">"):
        return rank > int(wanted[1:])
    return wanted.isdigit() and rank == int(wanted)


def parts_of(index: Value) -> list[Value]:
    """The entries of an index."""
    return list(index.items) if isinstance(index, Seq) and index.kind == "tuple" else [index]


def is_basic_index(index: Value) -> bool | None:
    """True for a basic index (view), False for an advanced one (copy), None where it cannot be told."""
    verdict: bool | None = True
    for part in parts_of(index):
        if (
            part is None
            or part is Ellipsis
            or (isinstance(part, (int, Slice)) and not isinstance(part, bool))
        ):
            continue
        if isinstance(part, Number) or (
            isinstance(part, Tensor) and part.shape == () and part.dtype == "int"
        ):
            continue
        if isinstance(part, Unknown):
            if part.hint == "number":
                continue
            if part.tensor is not None:
                return False
            verdict = None
            continue
        return False
    return verdict


def short_name(name: str) -> str:
    """`Tensor.exp_` -> `exp_`, `Tensor.__imul__` -> `mul_`, `nn.functional.relu` -> `relu`."""
    last = name.rpartition(".")[2]
    if last.startswith("__") and last.endswith("__"):
        inner = last[2:-2]
        if inner in DUNDER:
            return DUNDER[inner]
        if inner[0] == "i" and inner[1:] in DUNDER:
            return DUNDER[inner[1:]] + "_"
        if inner[0] == "r" and inner[1:] in DUNDER:
            return DUNDER[inner[1:]]
        if inner == "setitem":
            return "index_put_"
        if inner == "getitem":
            return "index"
    return last


DUNDER = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "pow": "pow",
    "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "neg": "neg", "pos": "positive",
    "invert": "bitwise_not", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "abs": "abs",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift", "div": "div",
}  # fmt: skip


def dtype_name(value: Value) -> str:
    """The machine's word for a torch dtype."""
    last = getattr(value, "path", "").rpartition(".")[2]
    if last in ("float", "float32"):
        return "float"
    if last in ("double", "float64"):
        return "double"
    if last in ("half", "float16", "bfloat16"):
        return "half"
    if last == "bool":
        return "bool"
    if last.startswith(("int", "uint", "long", "short", "qint")):
        return "int"
    if last.startswith(("complex", "cfloat", "cdouble")):
        return "complex"
    return "?"


__all__ = [
    "MISSING",
    "Array",
    "CaseSelection",
    "bind",
    "dtype_name",
    "is_basic_index",
    "parts_of",
    "short_name",
]


def is_no_operand(op: str, parameter: str, value: Seq | Unknown) -> bool:
    """Whether what is given at a parameter brings no graph: no tensor, or classes of which nothing says that they have one."""
    if takes_no_graph(op, parameter):
        return True
    return (
        isinstance(value, Unknown)
        and names_classes(op, parameter)
        and not (value.graph or value.tensor or value.carries or value.cuts)
    )
