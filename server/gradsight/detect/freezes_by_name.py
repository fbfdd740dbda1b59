"""Freezes by name that no name fits: `for name, p in net.named_parameters(): if "attn" in name: p.requires_grad = False`.

A loop that has come by every part of a model, with a condition on the part's name that was never true, and a freeze behind it.
Conditions that also ask for something else (an option, a type) may be meant not to hold.  Of several texts that are looked for,
one with a dot is a path into the model; shorter ones may be for other models.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import is_inside, remembered
from gradsight.interp.syntax_parts import parts_of
from gradsight.model.rule import quoted
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Assigned, Frozen, PartsSorted
from gradsight.model.values import Seq, Value

TEXT_METHODS = {"startswith", "endswith", "lower", "split", "format"}
ASKING = {"any", "str"}


class FreezesByName:
    """What was frozen by which statement, and the conditions that let nothing through."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.effective: set[ast.AST] = set()
        """Statements and calls that have frozen something, or set what was frozen already."""
        self.closed: dict[ast.If, tuple[Site, str]] = {}
        """Conditions that no name fitted, with the text that was looked for in vain if others were found."""

    @staticmethod
    def concerned_by(statement: ast.Assign) -> bool:
        return any(
            isinstance(one, ast.Attribute) and one.attr == "requires_grad" for one in statement.targets
        )

    def on_assigned(self, fact: Assigned) -> None:
        if self.concerned_by(fact.statement):
            self.effective.add(fact.statement)

    def on_frozen(self, fact: Frozen) -> None:
        self.effective.add(fact.site.node)

    def on_parts_sorted(self, fact: PartsSorted) -> None:
        questions = remembered(fact.node, "freezing questions", freezing_questions)
        if not questions or self.path.assuming or self.path.frame.unit.library:
            return
        firsts = [one.items[0] for one in fact.items if isinstance(one, Seq) and one.items]
        names = [one for one in firsts if isinstance(one, str)]
        if len(names) != len(fact.items) or any(map(is_made_up, fact.items)):
            return
        decided = [one.node for one in self.path.decisions]
        for question, freeze in questions:
            if not is_freeze(freeze, self.path.frame.namespace):
                continue
            if any(is_inside(node, question) for node in decided):
                # Which names are looked for is not known.
                continue
            if freeze not in self.effective:
                # A call that froze what was frozen before leaves no trace.
                if isinstance(freeze, ast.Assign) or not any(is_frozen_already(one) for one in fact.items):
                    self.closed.setdefault(question, (self.path.site(question.test), ""))
            else:
                missed = self.missed(question.test, names)
                if missed:
                    self.closed[question] = (self.path.site(question.test), missed)

    def missed(self, test: ast.expr, names: list[str]) -> str:
        """A path of the list that is looked through, of which no name has a part: `any(key in name for key in keys)`."""
        if not (isinstance(test, ast.Call) and test.args and isinstance(test.args[0], ast.GeneratorExp)):
            return ""
        generator = test.args[0]
        source, compared = generator.generators[0].iter, generator.elt
        is_plain = (
            isinstance(compared, ast.Compare)
            and isinstance(compared.ops[0], ast.In)
            and isinstance(compared.left, ast.Name)
        )
        listed: Any = self.path.frame.namespace.get(source.id) if isinstance(source, ast.Name) else None
        if not is_plain or not isinstance(listed, Seq) or listed.partial:
            return ""
        keys = [one for one in listed.items if isinstance(one, str)]
        return next((key for key in keys if "." in key and not any(key in name for name in names)), "")

    def finish(self) -> None:
        for question, (site, missed) in self.closed.items():
            freezes = [one for node in question.body for one in freezes_in(node)]
            if missed or not any(one in self.effective for one in freezes):
                names = {
                    "target": quoted(missed) if missed else "",
                    "test": quoted(ast.unparse(question.test)),
                }
                self.claims.add("freezes-nothing", site, self.path.call_steps(site), **names)


def freezing_questions(loop: ast.AST) -> list[tuple[ast.If, ast.AST]]:
    """The conditions in a loop that ask for the name of a part alone, each with a freeze behind it."""
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return []
    target = loop.target
    if not isinstance(target, ast.Tuple) or not isinstance(target.elts[0], ast.Name):
        return []
    called = {target.elts[0].id}
    for statement in loop.body:
        # `name = name.lower()`
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            if called & names_in(statement.value):
                called.add(statement.targets[0].id)
    found: list[tuple[ast.If, ast.AST]] = []
    for question in parts_of(loop, ast.If):
        if called & names_in(question.test) and asks_for_text(question.test):
            found += [(question, freeze) for node in question.body for freeze in freezes_in(node)]
    return found


def asks_for_text(test: ast.expr) -> bool:
    """Whether a condition compares texts and does nothing else; what a `not` or an `and` leaves out may be meant."""
    for node in ast.walk(test):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name not in TEXT_METHODS | ASKING:
                return False
        elif isinstance(node, (ast.BoolOp, ast.UnaryOp)):
            if isinstance(getattr(node, "op", None), (ast.And, ast.Not)):
                return False
        elif isinstance(node, (ast.NotIn, ast.NotEq, ast.Is, ast.IsNot, ast.Lt, ast.Gt, ast.LtE, ast.GtE)):
            return False
    return True


def freezes_in(node: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = [
        one for one in parts_of(node, ast.Assign) if FreezesByName.concerned_by(one) and len(one.targets) == 1
    ]
    calls = parts_of(node, ast.Call)
    return found + [
        one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == "requires_grad_"
    ]


def is_freeze(freeze: ast.AST, namespace: Any) -> bool:
    """Whether the value that would be set is False: as written, or as the names stand now."""
    given = freeze.value if isinstance(freeze, ast.Assign) else None
    if isinstance(freeze, ast.Call):
        given = freeze.args[0] if freeze.args else next((word.value for word in freeze.keywords), None)
    turned = isinstance(given, ast.UnaryOp) and isinstance(given.op, ast.Not)
    inner = given.operand if isinstance(given, ast.UnaryOp) and turned else given
    value: Any = None
    if isinstance(inner, ast.Constant):
        value = inner.value
    elif isinstance(inner, ast.Name):
        value = namespace.get(inner.id)
    return value is True if turned else value is False


def is_made_up(item: Value) -> bool:
    """Whether a part stands for all that a module which is not known may have."""
    return isinstance(item, Seq) and any(
        isinstance(one, Tensor) and (one.attributes or {}).get("<stand in>") for one in item.items
    )


def is_frozen_already(item: Seq) -> bool:
    return any(getattr(one, "requires_grad", True) is False for one in item.items[1:])


def names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
