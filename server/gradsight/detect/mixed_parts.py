"""Two parts of one tensor that are mixed in place, one after the other.

`q[:h] = q[:h] * cos - q[h:] * sin; q[h:] = q[h:] * cos + q[:h] * sin`: the second line reads the new first part.  A rotation
mixes both parts by the same coefficients; where each part has a function of its own (a coupling layer), the order is meant.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.detect.second_names import BY_HAND
from gradsight.interp.syntax import remembered, statement_around
from gradsight.model.events import Step
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Storage
from gradsight.model.trace import Wrote


class Mixture(NamedTuple):
    """A part of a tensor that became a sum of parts, each times a coefficient; all as text."""

    part: str
    parts: frozenset[str]
    coefficients: frozenset[str]


class MixedParts:
    """Hears of writes to parts."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.last: dict[Storage, tuple[Mixture, Site, Frame]] = {}

    def on_wrote(self, fact: Wrote) -> None:
        storage, frame = fact.tensor.storage, self.path.frame
        statement = statement_around(fact.site.node, frame)
        mixture = remembered(statement, "mixture", mixture_of) if isinstance(statement, ast.Assign) else None
        if mixture is None or fact.write.mode not in BY_HAND:
            self.last.pop(storage, None)
            return
        earlier = self.last.pop(storage, None)
        self.last[storage] = (mixture, fact.site, frame)
        if earlier is None or earlier[2] is not frame or earlier[1].loops != fact.site.loops:
            return
        first = earlier[0]
        if (
            first.part != mixture.part
            and first.parts == mixture.parts
            and first.coefficients == mixture.coefficients
        ):
            words = f"`{first.part}` has its new value from here on"
            self.claims.add(
                "alias-read-after-write",
                fact.site,
                [Step("written", earlier[1], words), *self.path.call_steps(fact.site)],
                how="parts",
                write=fact.op,
                target=first.part,
                alias=first.part,
                written=self.path.text_of_target(fact.site),
            )


def mixture_of(statement: ast.AST) -> Mixture | None:
    """What a statement mixes, if it assigns a sum of products of parts to one of them."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Subscript):
        return None
    terms = both_sides(statement.value, (ast.Add, ast.Sub))
    products = [both_sides(term, (ast.Mult,)) for term in terms or ()]
    if not products or not all(products):
        return None
    base = ast.unparse(target.value)
    parts: set[str] = set()
    coefficients: set[str] = set()
    for factors in products:
        own = [one for one in factors if isinstance(one, ast.Subscript) and ast.unparse(one.value) == base]
        if len(own) != 1:
            return None
        parts.add(ast.unparse(own[0]))
        coefficients.update(ast.unparse(one) for one in factors if one is not own[0])
    part = ast.unparse(target)
    if len(parts) != 2 or part not in parts:
        return None
    return Mixture(part, frozenset(parts), frozenset(coefficients))


def both_sides(node: ast.expr, operators: tuple[type[ast.operator], ...]) -> list[ast.expr]:
    """What an operator of these stands between, signs aside; none if it is another one, or if there is more of it."""
    node = unsigned(node)
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, operators):
        return []
    sides = [unsigned(node.left), unsigned(node.right)]
    is_more = any(isinstance(side, ast.BinOp) and isinstance(side.op, operators) for side in sides)
    return [] if is_more else sides


def unsigned(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return node
