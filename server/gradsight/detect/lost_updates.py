"""Updates by hand that leave a tensor as it was: a new one under the name of a loop, a copy of the tensor onto itself, or
its average with itself.

*Moved*: a tensor that was computed from a leaf and from the leaf's own gradient, or from two parameters under the name of
one of them.  It is lost if the name of a `for` is bound to it and nothing in the loop reads that name again: the next
round binds the name anew.  So is whatever else is computed from a parameter, or from a gradient, under its own name:
`p = p.data.clamp(-c, c)`, `g = p.grad; g = g / 2`.
"""

from __future__ import annotations

import ast

from gradsight.detect.changed_data import loops_around
from gradsight.detect.claims import Claims
from gradsight.detect.gradient_ledger import gradient_owner
from gradsight.detect.path import Path
from gradsight.interp.syntax import names_read
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.loop_names import binds, is_read_nowhere_else, loses_at_round_end
from gradsight.model.rule import quoted
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Assigned, Assigning, Combined, Used

SCALING = ("__mul__", "__rmul__", "__truediv__")
STEPPING = ("sub", "add")
MOST_SHARES = 1000
ROUNDING = 1e-6
MOVING = ("__sub__", "__add__", "__radd__")


class LostUpdates:
    """Follows multiples of gradients into updates, and updates into names."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.multiples: dict[Tensor, Tensor] = {}
        """Multiples of gradients, with the leaf whose gradient it is."""
        self.shares: dict[Tensor, tuple[Tensor, float]] = {}
        """Products of a tensor and a number."""
        self.moved: set[Tensor] = set()
        self.step: ast.AST | None = None
        """The call that was last given a leaf and its own gradient."""
        self.renaming: ast.Assign | None = None
        """The assignment that is executed, if it makes a value of two parameters and its target names one of them."""
        self.edited: tuple[ast.Assign, Tensor] | None = None
        """The assignment that is executed, if its target names a parameter or a gradient that it computes with, and that."""

    def on_combined(self, fact: Combined) -> None:
        if not isinstance(fact.result, Tensor):
            return
        self.look_for_averages(fact)
        left, right = self.leaf_of_gradient(fact.left), self.leaf_of_gradient(fact.right)
        owner = left if left is not None else right
        if fact.operator in SCALING and owner is not None:
            self.multiples[fact.result] = owner
        elif fact.operator in MOVING:
            if (right is not None and right is fact.left) or (left is not None and left is fact.right):
                self.moved.add(fact.result)

    def look_for_averages(self, fact: Combined) -> None:
        """`0.9 * old + 0.1 * old`: one of the two was to be another tensor."""
        factor, result = fact.right, fact.result
        if fact.operator in ("__mul__", "__rmul__") and isinstance(factor, float):
            if len(self.shares) < MOST_SHARES:
                self.shares[result] = (handled(fact.left), factor)
        elif fact.operator in ("__add__", "__radd__") and fact.left in self.shares and factor in self.shares:
            (first, one), (second, other) = self.shares[fact.left], self.shares[factor]
            is_whole = abs(one + other - 1) < ROUNDING and 0 < one < 1
            if first is second and is_whole and multiplies_the_same(fact.node):
                site = self.path.site(fact.node)
                self.claims.add(
                    "update-lost", site, [], target=quoted(first.label or "a tensor"), average=True
                )

    def on_used(self, fact: Used) -> None:
        """`buffer.copy_(buffer)`: the source was to be another tensor.  `p.sub(p.grad)` is a step, if somebody keeps it."""
        source = fact.arguments.get("other")
        if is_call_of(fact.node, STEPPING) and isinstance(source, Tensor):
            leaf = self.leaf_of_gradient(source)
            self.step = fact.node if leaf is not None and leaf is fact.arguments.get("self") else None
        if type(source) is not Tensor or source is not fact.arguments.get("self"):
            return
        node = fact.node
        if is_call_of(node, ("copy_",)):
            text = quoted(self.path.text_of_target(self.path.site(node)))
            self.claims.add("update-lost", self.path.site(node), [], target=text, itself=True)

    def leaf_of_gradient(self, value: object) -> Tensor | None:
        if not isinstance(value, Tensor):
            return None
        known = self.multiples.get(value)
        return known if known is not None else gradient_owner(value)

    def on_assigning(self, fact: Assigning) -> None:
        statement = fact.statement
        target = statement.targets[0]
        self.renaming = self.edited = None
        if not self.path.frame.loops or not isinstance(target, ast.Name) or len(statement.targets) != 1:
            return
        before = self.path.frame.namespace.get(target.id)
        if isinstance(before, Tensor) and (before.is_parameter or before.snapshot == "grad"):
            if target.id in names_read(statement.value) and not reads_gradient(statement.value):
                self.edited = (statement, before)
        if isinstance(statement.value, ast.BinOp):
            names = {part.id for part in syntax_parts(statement.value) if isinstance(part, ast.Name)}
            values = {name: self.path.frame.namespace.get(name) for name in names}
            held = {
                name for name, value in values.items() if isinstance(value, Tensor) and value.is_parameter
            }
            if target.id in held and len(held) > 1:
                self.renaming = statement

    @staticmethod
    def concerned_by(statement: ast.Assign) -> bool:
        return len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)

    def on_assigned(self, fact: Assigned) -> None:
        statement = fact.statement
        target = statement.targets[0]
        is_renaming, self.renaming = self.renaming is statement, None
        is_step, self.step = self.step is statement.value, None
        edited, self.edited = self.edited, None
        if edited is not None and edited[0] is statement and isinstance(target, ast.Name):
            self.edited_by(statement, target.id, edited[1])
            return
        if not (self.moved or is_renaming or is_step) or not isinstance(target, ast.Name):
            return
        frame = self.path.frame
        held = frame.namespace.get(target.id)
        is_moved = (
            is_step
            or held in self.moved
            or (is_renaming and isinstance(held, Tensor) and not held.is_parameter)
        )
        loop = next((one for one in reversed(loops_around(statement, frame)) if binds(one, target.id)), None)
        if is_moved and loop is not None and loses_at_round_end(loop, target.id, statement):
            self.claims.add("update-lost", self.path.site(statement), [], target=quoted(target.id))

    def edited_by(self, statement: ast.Assign, name: str, before: Tensor) -> None:
        """A parameter of a loop, or a gradient that was read in it, has a new value under its name, and only there."""
        frame = self.path.frame
        held = frame.namespace.get(name)
        if not isinstance(held, Tensor) or held.storage is before.storage:
            return
        if held.storage.content == before.storage.content or held.is_parameter:
            return
        is_gradient = before.snapshot == "grad"
        loops = loops_around(statement, frame)
        loop = next((one for one in reversed(loops) if is_gradient or binds(one, name)), None)
        scope = frame.function.node.body if frame.function is not None else frame.unit.tree
        if not isinstance(loop, ast.stmt) or not isinstance(scope, list):
            return
        if is_read_nowhere_else(scope, loop, name, statement):
            site = self.path.site(statement)
            self.claims.add("update-lost", site, [], target=quoted(name), gradient=is_gradient)


def reads_gradient(value: ast.expr) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr == "grad" for part in syntax_parts(value))


def multiplies_the_same(average: ast.AST) -> bool:
    """Whether the two products of a sum have a factor in common, as they are written: else it is known by another name."""
    if not isinstance(average, ast.BinOp):
        return False
    sides = [average.left, average.right]
    factors = [
        {ast.unparse(one) for one in (side.left, side.right) if not isinstance(one, ast.Constant)}
        for side in sides
        if isinstance(side, ast.BinOp)
    ]
    return len(factors) == len(sides) and bool(factors[0] & factors[1])


def handled(tensor: Tensor) -> Tensor:
    """The tensor behind `p.data` or `p.detach()`."""
    return tensor.source if tensor.source is not None and tensor.snapshot in ("data", "detach") else tensor


def is_call_of(node: ast.AST, methods: tuple[str, ...]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods
