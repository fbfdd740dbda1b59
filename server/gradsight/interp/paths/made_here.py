"""Whether a function writes in place only to what it made itself, which nobody has seen before.

A question to the syntax tree, and to the facts of torch's operators.  *Made here*: whatever a name may be bound to at that place is
what an operator returns in a storage of its own, a view of that, or a number.

    def shift(ids):
        shifted = ids.new_zeros(ids.shape)
        shifted[:, 1:] = ids[:, :-1]
        return shifted
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gradsight.interp.paths.call_graph import called_name, is_of_sequences, is_text, names_writing
from gradsight.interp.paths.roles import deeds_of, key_of
from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import pairs, parts_of, syntax_parts
from gradsight.ops.table import Table

OF_TORCH = ("torch.", "F.", "nn.")
NUMBERS = frozenset({"len", "int", "float", "bool", "range", "round"})
"""Functions of Python that return what no tensor shares."""
OF_CONTAINERS = frozenset({*dir(dict), *dir(list), *dir(set)})
MAKING = (
    ast.Constant, ast.UnaryOp, ast.Compare, ast.JoinedStr, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.ListComp, ast.DictComp,
    ast.SetComp,
)  # fmt: skip
"""Expressions with a value that nobody else has; of containers, that is said of them and not of what they hold."""
WRITING = frozenset({ast.Call, ast.AugAssign, ast.Assign, ast.Attribute, ast.Global, ast.Nonlocal})
"""What a write can be."""
OF_LISTS = (ast.Add, ast.Mult)
"""Operators of lists, too, whose result holds the same items."""
Function = (ast.FunctionDef, ast.AsyncFunctionDef)
Loop = (ast.For, ast.AsyncFor, ast.While)


def writes_only_to_made(function: ast.AST, table: Table) -> frozenset[str] | None:
    """Names of methods that are taken for those of tensors, if a function writes only to what it made; None if it may write to more."""
    known: frozenset[str] | None = remembered(
        function, "writes only to made", lambda one: _writes_only_to_made(one, table)
    )
    return known


def _writes_only_to_made(function: ast.AST, table: Table) -> frozenset[str] | None:
    if not isinstance(function, Function):
        return None
    made = MadeHere(function, table)
    return frozenset(made.methods) if all(map(made.is_harmless, made.writes())) else None


class InPlaceWrite(NamedTuple):
    """A write: by which statement, to what, and whether that would be to an item if it is a container."""

    statement: ast.stmt
    to: ast.expr | None
    of_items: bool


class PlaceInBlock(NamedTuple):
    """Where a statement stands."""

    block: list[ast.stmt]
    number: int
    around: ast.stmt | None


class MadeHere:
    """What one function makes."""

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef, table: Table) -> None:
        self.function, self.table = function, table
        self.methods: set[str] = set()
        self.places: dict[ast.stmt, PlaceInBlock] = {}
        self.asked: set[tuple[int, str, bool]] = set()
        self.note_places(function.body, None)
        self.parameters = {one.arg: one for one in parts_of(function.args, ast.arg)}
        self.inner = {one.arg for one in parts_of(function, ast.arg)} - {*self.parameters}
        """Parameters of functions inside of it, which are called like its own names."""

    def note_places(self, block: list[ast.stmt], around: ast.stmt | None) -> None:
        for index, statement in enumerate(block):
            self.places[statement] = PlaceInBlock(block, index, around)
            for inner in blocks_of(statement):
                self.note_places(inner, statement)

    # -- what is written ---------------------------------------------------------------------------------------------

    def writes(self) -> Iterator[InPlaceWrite]:
        for statement in self.places:
            is_inner = isinstance(statement, (*Function, ast.ClassDef))
            for part in own_parts(statement):
                if part.__class__ not in WRITING:
                    continue
                for write in self.writes_of(statement, part):
                    yield write._replace(to=None) if is_inner else write

    def writes_of(self, statement: ast.stmt, part: ast.AST) -> Iterator[InPlaceWrite]:
        if isinstance(part, ast.Call):
            if names_writing(called_name(part)):
                yield InPlaceWrite(
                    statement, part.func.value if isinstance(part.func, ast.Attribute) else None, True
                )
            if any(one.arg in ("inplace", "out") for one in part.keywords):
                yield InPlaceWrite(statement, None, True)
        elif isinstance(part, ast.AugAssign):
            if not is_of_sequences(part):
                yield InPlaceWrite(statement, part.target, not isinstance(part.target, ast.Name))
        elif isinstance(part, ast.Assign):
            for target, _ in (pair for one in part.targets for pair in pairs(one, part.value)):
                if isinstance(target, ast.Subscript) and not is_text(target.slice):
                    if not self.is_container(target.value):
                        yield InPlaceWrite(statement, target.value, False)
        elif (isinstance(part, ast.Attribute) and part.attr == "data") or isinstance(
            part, (ast.Global, ast.Nonlocal)
        ):
            yield InPlaceWrite(statement, None, True)

    def is_container(self, node: ast.expr) -> bool:
        """Whether the text does to a value what can be done to Python's containers and to no tensor: `seen.get(index)`."""
        key = key_of(node)
        return bool(key) and any(
            method in OF_CONTAINERS and self.table.find(f"Tensor.{method}") is None
            for method in deeds_of(self.function).done_to(key)
        )

    def is_harmless(self, write: InPlaceWrite) -> bool:
        return write.to is not None and self.is_made(write.to, write.statement, write.of_items)

    # -- what was made -----------------------------------------------------------------------------------------------

    def is_made(self, node: ast.expr, at: ast.stmt, of_items: bool) -> bool:
        """Whether a value was made in the function; `of_items`: with the tensors in it, if it is a container."""
        if isinstance(node, ast.Name):
            question = (id(at), node.id, of_items)
            if question in self.asked:
                # What a name is bound to by itself, `h = h * 2`, adds nothing to what else it is bound to.
                return True
            self.asked.add(question)
            return all(
                value is not None and self.is_made(value, where, of_items)
                for value, where in self.bound(node.id, at)
            )
        if isinstance(node, ast.BinOp):
            return not (of_items and isinstance(node.op, OF_LISTS)) or is_number(node.right)
        if isinstance(node, MAKING):
            return not of_items or isinstance(node, (ast.Constant, ast.UnaryOp, ast.Compare))
        if isinstance(node, ast.IfExp):
            return self.is_made(node.body, at, of_items) and self.is_made(node.orelse, at, of_items)
        if isinstance(node, ast.Subscript):
            return self.is_made(node.value, at, True)
        return isinstance(node, ast.Call) and self.is_result_made(node, at)

    def is_result_made(self, call: ast.Call, at: ast.stmt) -> bool:
        """Whether a call is one of an operator that returns a storage of its own, or a view of what was made here."""
        target = call.func
        if isinstance(target, ast.Name):
            return target.id in NUMBERS
        if not isinstance(target, ast.Attribute):
            return False
        owner: ast.expr | None = call.args[0] if call.args else None
        fact = self.table.lookup(key) if (key := key_of(target)).startswith(OF_TORCH) else None
        if fact is None:
            if isinstance(target.value, ast.Name) and target.value.id == "self":
                return False
            fact, owner = self.table.find(f"Tensor.{target.attr}"), target.value
            self.methods.add(target.attr)
        if fact is None:
            return False
        outputs = [output for case in fact.cases for output in case.outputs]
        # Whoever writes into `out` is known by that word.
        shared = {output.alias for output in outputs if output.aliased != "never"} - {"out"}
        if not shared:
            return True
        return shared == {*fact.parameters[:1]} and owner is not None and self.is_made(owner, at, True)

    def bound(self, name: str, at: ast.stmt) -> Iterator[tuple[ast.expr | None, ast.stmt]]:
        """What a name may be bound to when a statement begins, and by which statement; None for what is not known."""
        if name in self.inner:
            yield None, at
        # A comprehension has names of its own.
        yield from (one for one in self.bound_in(at, name) if one[0] is None)
        here: ast.stmt | None = at
        while here is not None:
            place = self.places[here]
            for before in reversed(place.block[: place.number]):
                found = self.bound_by(before, name)
                yield from found
                if found and isinstance(before, (ast.Assign, ast.AnnAssign)):
                    return
            here = place.around
            if isinstance(here, Loop):
                yield from self.bound_by(here, name)
            elif here is not None:
                yield from self.bound_in(here, name)
        parameter = self.parameters.get(name)
        if parameter is None or not is_declared_number(parameter):
            yield None, self.function

    def bound_by(self, statement: ast.stmt, name: str) -> list[tuple[ast.expr | None, ast.stmt]]:
        """What a statement and those inside of it bind to a name."""
        found = self.bound_in(statement, name)
        for block in blocks_of(statement):
            for inner in block:
                found += self.bound_by(inner, name)
        return found

    def bound_in(self, statement: ast.stmt, name: str) -> list[tuple[ast.expr | None, ast.stmt]]:
        """What a statement itself binds to a name; where `+=` does not write in place, it makes something new."""
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            return []
        if isinstance(statement, ast.Assign):
            targets = [pair for one in statement.targets for pair in pairs(one, statement.value)]
        elif isinstance(statement, ast.AnnAssign):
            targets = [(statement.target, statement.value)] if statement.value is not None else []
        else:
            targets = []
        found: list[tuple[ast.expr | None, ast.stmt]] = [
            (value, statement)
            for target, value in targets
            if isinstance(target, ast.Name) and target.id == name
        ]
        known = {id(target) for target, _ in targets}
        if isinstance(statement, (*Function, ast.ClassDef)):
            return [(None, statement)] if statement.name == name else []
        return found + [
            (None, statement)
            for part in own_parts(statement)
            if isinstance(part, ast.Name)
            and part.id == name
            and not isinstance(part.ctx, ast.Load)
            and id(part) not in known
        ]


def is_declared_number(parameter: ast.arg) -> bool:
    """`size: int`."""
    declared = parameter.annotation
    return isinstance(declared, ast.Name) and (declared.id in NUMBERS or declared.id == "str")


def is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def blocks_of(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a statement that is not a definition."""
    if isinstance(statement, (*Function, ast.ClassDef)):
        return []
    holders = [statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]
    return [
        block
        for holder in holders
        for name in ("body", "orelse", "finalbody")
        if (block := getattr(holder, name, None)) and isinstance(block, list)
    ]


def own_parts(statement: ast.stmt) -> Iterable[ast.AST]:
    """The parts of a statement without the statements in its blocks; all of a definition."""
    inner = blocks_of(statement)
    if not inner:
        return syntax_parts(statement)
    skipped = {id(one) for block in inner for one in block}
    found: list[ast.AST] = [statement]
    for one in found:
        found += [part for part in ast.iter_child_nodes(one) if id(part) not in skipped]
    return found
