"""Comparisons: known, a tensor, or a condition on an unknown value that stays the same when asked again."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from gradsight.interp.python.name_reading import NameReading
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Identified
from gradsight.model.values import (
    MISSING,
    AbsentGrad,
    ClassValue,
    External,
    Function,
    Instance,
    Mapping,
    Negated,
    Number,
    Seq,
    Unknown,
    Value,
    Version,
    is_constant,
)

COMPARE: dict[type, tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
}
OPERATIONS = dict(COMPARE.values())
TENSOR_COMPARE = {
    "==": "__eq__",
    "!=": "__ne__",
    "<": "__lt__",
    "<=": "__le__",
    ">": "__gt__",
    ">=": "__ge__",
}
MIRRORED = {"<": ">", ">": "<", "==": "=="}
OPPOSITE = {"!=": "==", "is not": "is", "not in": "in", ">=": "<", "<=": ">"}
MOST_ITEMS = 64


class Comparisons(NameReading):
    """`==`, `<`, `is`, `in` and their chains."""

    def compare(self, node: ast.Compare) -> Value:
        left = self.evaluate(node.left)
        outcome: Value = True
        last = len(node.ops) - 1
        for position, (op, comparator) in enumerate(zip(node.ops, node.comparators)):
            right = self.evaluate(comparator)
            kind = type(op)
            if self.path.frame.loops:
                self.loops.note_comparison(
                    kind,
                    node.left if position == 0 else node.comparators[position - 1],
                    comparator,
                    left,
                    right,
                )
            if kind is ast.Is:
                outcome = self.compare_values("is", left, right, node)
            elif kind is ast.IsNot:
                outcome = self.negate(self.compare_values("is", left, right, node))
            elif kind is ast.In:
                outcome = self.contains(right, left)
            elif kind is ast.NotIn:
                outcome = self.negate(self.contains(right, left))
            else:
                outcome = self.compare_values(COMPARE[kind][0], left, right, node)
            if (
                position < last
                and not isinstance(outcome, Tensor)
                and not self.path.decide(outcome, comparator)
            ):
                return False
            left = right
        return outcome

    def negate(self, value: Value) -> Value:
        if isinstance(value, bool):
            return not value
        if isinstance(value, Negated):
            return value.value
        return Negated(value)

    def compare_values(self, op: str, left: Value, right: Value, node: ast.AST) -> Value:
        """A comparison: known, a tensor, or an unknown condition that stays the same when asked again."""
        if op == "is":
            return self.identical(left, right)
        if isinstance(left, Tensor):
            return self.autograd.tensor_operator(TENSOR_COMPARE[op], left, right, node)
        if isinstance(right, Tensor):
            flipped = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op)
            return self.autograd.tensor_operator(TENSOR_COMPARE[flipped], right, left, node)
        if is_constant(left) and is_constant(right):
            try:
                return OPERATIONS[op](left, right)
            except Exception:
                return Unknown("comparison of constants that fails", "bool")
        if op in ("==", "!=") and (
            (isinstance(left, (Seq, Mapping)) and is_constant(right))
            or (isinstance(right, (Seq, Mapping)) and is_constant(left))
        ):
            return op == "!="
        if isinstance(left, Version) or isinstance(right, Version):
            apart = version_distance(left, right)
            if apart is not None:
                return OPERATIONS[op](apart, 0)
        comparable = (Seq, ClassValue, External, Version, type(None))
        if op in ("==", "!=") and isinstance(left, comparable) and isinstance(right, comparable):
            same = self.equal(left, right)
            if same is not None:
                return same == (op == "==")
        if op in OPPOSITE:
            return self.negate(self.compare_values(OPPOSITE[op], left, right, node))
        if not isinstance(left, (Unknown, Number)):
            left, right, op = right, left, MIRRORED[op]
        elif op == ">" and isinstance(right, (Unknown, Number)):
            left, right, op = right, left, "<"
        if isinstance(left, Number) and left.shifted is not None and isinstance(right, (int, float)):
            unshifted, offset = left.shifted
            left, right = unshifted, right - offset
        return (
            self.question(op, left, right)
            if isinstance(left, (Unknown, Number))
            else Unknown("comparison", "bool")
        )

    def question(self, kind: str, value: Unknown | Number, constant: Value | tuple[Value, ...]) -> Unknown:
        """A condition on an unknown value; the same question is the same condition."""
        answers = value.answers
        if answers is None:
            answers = value.answers = {}
        is_known = is_constant(constant) or isinstance(constant, tuple)
        # 1, 1.0 and True are one key of a dict and one place on the number line.
        key = (kind, constant if is_known else id(constant))
        condition: Unknown | None = answers.get(key)
        if condition is None:
            condition = answers[key] = Unknown("comparison with an unknown value", "bool")
            if is_known:
                condition.asks = (kind, value, constant)
            else:
                self.path.kept_alive.append(constant)
        return condition

    def any_of(self, conditions: list[Value]) -> Value:
        """Whether one of several conditions holds, as one condition where they ask whether one value is this or that."""
        asked = [condition.asks for condition in conditions if isinstance(condition, Unknown)]
        values = {id(asks[1]): asks[1] for asks in asked if asks is not None and asks[0] == "=="}
        constants: list[Value] = [
            asks[2]
            for asks in asked
            if asks is not None and asks[0] == "==" and not isinstance(asks[2], tuple)
        ]
        if len(constants) < len(conditions) or len(values) > 1:
            return conditions[0]
        return self.question("in", values.popitem()[1], tuple(constants))

    def equal(self, left: Value, right: Value) -> bool | None:
        """Whether two values are equal, or None."""
        if is_constant(left) and is_constant(right):
            return bool(left == right)
        if isinstance(left, External) and isinstance(right, External):
            return left.path == right.path
        if isinstance(left, (ClassValue, External)) and isinstance(right, (ClassValue, External)):
            # A class is the same class however often the statement that defines it was executed.
            return left is right or None is not getattr(left, "node", None) is getattr(right, "node", None)
        if isinstance(left, Version) or isinstance(right, Version):
            apart = version_distance(left, right)
            return apart == 0 if apart is not None else (False if left is None or right is None else None)
        if isinstance(left, Seq) and isinstance(right, Seq) and left.exact and right.exact:
            if len(left.items) != len(right.items):
                return False
            pairs = [self.equal(a, b) for a, b in zip(left.items, right.items)]
            if False in pairs:
                return False
            return True if all(pair is True for pair in pairs) else None
        return True if left is right else None

    def identical(self, left: Value, right: Value) -> Value:
        """`is`: mostly asked about None."""
        if isinstance(left, AbsentGrad) or isinstance(right, AbsentGrad):
            self.path.tell(Identified(left, right))
        if left is right:
            return True
        if isinstance(left, AbsentGrad):
            left = None
        if isinstance(right, AbsentGrad):
            right = None
        if is_constant(left) and is_constant(right):
            return left is right or (isinstance(left, type(right)) and left == right)
        for first, second in ((left, right), (right, left)):
            if second is None or isinstance(second, bool):
                if isinstance(first, Unknown):
                    if second is None and first.hint:
                        return False
                    return self.question("is", first, second)
                return False
        if isinstance(left, Tensor) and isinstance(right, Tensor):
            return False if left.storage is not right.storage else Unknown("identity of two aliases", "bool")
        if isinstance(left, (Unknown, Number)) or isinstance(right, (Unknown, Number)):
            return Unknown("identity", "bool")
        if isinstance(left, External) and isinstance(right, External):
            return left.path == right.path
        return False

    def contains(self, container: Value, item: Value) -> Value:
        if isinstance(container, str) and isinstance(item, str):
            return item in container
        if isinstance(container, Instance):
            own, _ = container.cls.find("__contains__")
            if isinstance(own, Function):
                return self.call(own, [container, item], {}, self.path.node)
        if isinstance(container, Mapping):
            key = self.objects.mapping_key(item)
            if key in container.items:
                return True
            if container.exact and isinstance(item, (Unknown, Number)) and not container.keys:
                return self.membership(list(container.items), item)
            return False if container.exact and key is not MISSING else Unknown("membership", "bool")
        if isinstance(container, Seq):
            outcomes = [self.equal(element, item) for element in container.items[:MOST_ITEMS]]
            if True in outcomes:
                return True
            if container.exact and all(outcome is False for outcome in outcomes):
                return False
            if container.exact and isinstance(item, (Unknown, Number)):
                return self.membership(container.items, item)
            return Unknown("membership", "bool")
        if isinstance(container, range) and isinstance(item, int):
            return item in container
        if isinstance(container, Unknown):
            asked = ("contains", item if is_constant(item) else id(item))
            return container.derived(asked, "membership", "bool")
        return Unknown("membership", "bool")

    def membership(self, options: list[Value], item: Unknown | Number) -> Unknown:
        """Whether an unknown value is one of several."""
        if len(options) <= MOST_ITEMS and all(is_constant(option) for option in options):
            return self.question("in", item, tuple(options))
        return Unknown("membership", "bool")


def version_distance(left: Value, right: Value) -> int | None:
    """How far the left number of writes is from the right one, where that is known."""
    if isinstance(left, Version):
        return left.minus(right)
    apart = right.minus(left) if isinstance(right, Version) else None
    return -apart if apart is not None else None
