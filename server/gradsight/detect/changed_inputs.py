"""What a call was given and changed in place, and what the caller goes on using as if it had not.

Two moments show it: an operand of an expression that a later operand's call overwrites before the two are combined
(`x + self.body(x)`), and an argument that is read again after a call that overwrote it and gave something else.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.detect.second_names import BY_HAND, began_blank, returns_argument
from gradsight.detect.shape_questions import asks_about_shape
from gradsight.detect.wording import quoted_write
from gradsight.interp.syntax import is_inside, statement_around, written_name
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.rule import quoted
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Tensor, Write
from gradsight.model.trace import NameRead, Used, Wrote

RUNNING = frozenset({"list", "tuple", "set", "any", "all", "deque"})
"""What goes through an iterator."""
SETTING = ("copy_", "load_state_dict", "optimizer step", "data assignment", "out=")
"""Writes that give a tensor a new meaning instead of working on its value."""
MOST_CALLS = 6
"""How many calls outwards a changed argument is followed."""


class ChangedInput:
    """A name whose tensor was overwritten by a call that it was given to."""

    __slots__ = ("call", "write")

    def __init__(self, write: Write, call: Site) -> None:
        self.write = write
        self.call = call


class ChangedInputs:
    """Inputs that are read after the call that overwrote them."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_wrote(self, fact: Wrote) -> None:
        write = fact.write
        if write.mode not in BY_HAND or fact.op in SETTING or not is_input(fact.tensor):
            return
        if fact.region is not None and fact.others:
            # `cache[:, t] = key`: a place is filled.
            return
        if is_for_the_caller(fact.site):
            return
        places = [fact.site, *fact.site.callers()[:MOST_CALLS]]
        if any(is_of_custom_function(place.frame) for place in places):
            # What a custom Function does to its input it declares: `mark_dirty`.
            return
        self.watch_arguments(fact.site, write)
        for distance, call in enumerate(places[1:]):
            if not self.watch_arguments(call, write, is_near=distance == 0):
                return

    def watch_arguments(self, call: Site, write: Write, is_near: bool = True) -> bool:
        """Watch the names that a call was given; whether it is one that does not say that it works in place.

        Under the name of a parameter a tensor is handed to the function that writes; further out it may be passed on as a state
        that functions change and give back.
        """
        node = call.node
        if not isinstance(node, ast.Call) or asks_to_write(node):
            return False
        named = [keyword.value for keyword in node.keywords] if is_near else []
        for argument in [*node.args, *named]:
            for name in names_in(argument):
                self.watch(name, call, write)
        return True

    def watch(self, name: str, call: Site, write: Write) -> None:
        frame = call.frame
        given = frame.namespace.get(name)
        if not isinstance(given, Tensor) or given.storage is not write.writer.storage:
            return
        statement = statement_around(call.node, frame)
        if isinstance(statement, ast.Expr) and only_run(statement.value) is call.node:
            return
        if isinstance(statement, ast.withitem) and statement.context_expr is call.node:
            # A context manager is entered for what it does.
            return
        if frame.watched is None:
            frame.watched = {}
        frame.watched.setdefault(name, ChangedInput(write, call))

    def on_name_read(self, fact: NameRead) -> None:
        frame = self.path.frame
        changed = frame.watched.get(fact.name) if frame.watched is not None else None
        if not isinstance(changed, ChangedInput) or frame.watched is None:
            return
        value = frame.namespace.get(fact.name)
        write = changed.write
        if not isinstance(value, Tensor) or value.storage is not write.writer.storage:
            del frame.watched[fact.name]
            return
        if not self.is_read_as_input(fact, frame, changed):
            return
        del frame.watched[fact.name]
        if written_more_than_once(write):
            # What a call changes again and again is a state that it advances.
            return
        read = Step(
            "read", self.path.site(fact.node), f"{quoted(fact.name)} is read here, with the new value"
        )
        self.report(fact.name, write, changed.call, read)

    def is_read_as_input(self, fact: NameRead, frame: Frame, changed: ChangedInput) -> bool:
        """Whether a name is read for its value, by something else than the function that keeps its state there."""
        statement = statement_around(fact.node, frame)
        if statement is None or asks_about_shape(fact.node, statement, frame):
            return False
        if returns_argument(fact.name, statement, frame) or is_written_by(statement, fact.name):
            return False
        again = called_text(changed.call.node)
        return not any(
            isinstance(inner, ast.Call) and fact.node in inner.args and called_text(inner) == again
            for inner in ast.walk(statement)
        )

    def on_used(self, fact: Used) -> None:
        for value in fact.arguments.values():
            if type(value) is Tensor and value.storage.writes and is_input(value):
                operands = operands_of(fact.node)
                if len(operands) > 1:
                    self.check_operand(value, operands, fact.node)

    def check_operand(self, tensor: Tensor, operands: list[ast.expr], node: ast.AST) -> None:
        """An operand that was overwritten while an operand after it was evaluated."""
        write = tensor.storage.writes[-1]
        if write.mode not in BY_HAND or write.op in SETTING or is_of_custom_function(write.site.frame):
            return
        frame = self.path.frame
        for position, operand in enumerate(operands[:-1]):
            if not isinstance(operand, ast.Name) or frame.namespace.get(operand.id) is not tensor:
                continue
            for later in operands[position + 1 :]:
                if not isinstance(later, ast.Name):
                    place = place_within(write.site, later, frame)
                    if place is not None:
                        read = Step(
                            "read", self.path.site(node), f"{quoted(operand.id)} has the new value here"
                        )
                        self.report(operand.id, write, place, read)
                        return

    def report(self, name: str, write: Write, call: Site, read: Step) -> None:
        is_layer = write.site.call is not None
        place = call if is_layer else write.site
        steps = [read]
        if is_layer:
            steps.insert(0, Step("written", write.site, f"{quoted_write(write)} works in place"))
        elif call.node is not write.site.node:
            steps.insert(0, Step("call", call, f"{quoted(name)} is given to the call here"))
        self.claims.add(
            "alias-read-after-write",
            place,
            steps,
            how="layer" if is_layer else "argument",
            write=write.op,
            target=name,
            alias=name,
            written=self.path.text_of_target(write.site),
        )


def is_for_the_caller(site: Site) -> bool:
    """Whether a statement writes a parameter that its function does not read any more: only the caller can be meant to."""
    function = site.frame.function
    statement = statement_around(site.node, site.frame)
    target: ast.AST | None = statement if isinstance(statement, ast.AugAssign) else None
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        target = statement.targets[0]
    elif isinstance(statement, ast.Expr):
        target = statement.value
    name = written_name(target) if target is not None else ""
    if function is None or statement is None or not name:
        return False
    parameters = {part.arg for part in syntax_parts(function.node.args) if isinstance(part, ast.arg)}
    if name not in parameters:
        return False
    loop = next((one for one in loops_in(function.node) if is_inside(site.node, one)), None)
    end = int(getattr(statement, "end_lineno", 0) or 0)
    return not any(
        isinstance(part, ast.Name)
        and part.id == name
        and isinstance(part.ctx, ast.Load)
        and (part.lineno > end or (loop is not None and is_inside(part, loop)))
        and not is_inside(part, statement)
        for part in syntax_parts(function.node)
    )


def loops_in(function: ast.AST) -> list[ast.AST]:
    """The loops of a function, outermost first."""
    return [part for part in syntax_parts(function) if isinstance(part, (ast.For, ast.While))]


def is_of_custom_function(frame: Frame) -> bool:
    owner = frame.function.owner if frame.function is not None else None
    return owner is not None and owner.kind == "autograd"


def only_run(expression: ast.expr) -> ast.expr:
    """What a statement runs for what it does: `list(map(write, tensors))` runs the `map`."""
    while (
        isinstance(expression, ast.Call)
        and isinstance(expression.func, ast.Name)
        and expression.func.id in RUNNING
        and len(expression.args) == 1
    ):
        expression = expression.args[0]
    return expression


def names_in(argument: ast.expr) -> list[str]:
    """The names that an argument hands on as they are: itself, or the members of `{"image": image}` and `(x, y)`."""
    parts: list[ast.expr | None] = [argument]
    if isinstance(argument, ast.Dict):
        parts = [*argument.values]
    elif isinstance(argument, (ast.Tuple, ast.List)):
        parts = [*argument.elts]
    return [part.id for part in parts if isinstance(part, ast.Name)]


def is_input(tensor: Tensor) -> bool:
    """Whether a tensor holds a value that somebody computed or loaded: no parameter, and nothing made to be filled."""
    return not (tensor.is_leaf and tensor.requires_grad is True) and not began_blank(tensor)


def written_more_than_once(write: Write) -> bool:
    return sum(other.site.key == write.site.key for other in write.writer.storage.writes) > 1


def asks_to_write(call: ast.Call) -> bool:
    """Whether a call says that it works in place: by its name, `inplace` or `out`."""
    name = called_text(call).rpartition(".")[2]
    return name.endswith("_") or any(
        keyword.arg in ("inplace", "in_place", "out") and not is_false(keyword.value)
        for keyword in call.keywords
    )


def is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def called_text(call: Any) -> str:
    """The dotted name that is called; empty for anything else."""
    function = getattr(call, "func", None)
    parts: list[str] = []
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    if isinstance(function, ast.Name):
        parts.append(function.id)
    return ".".join(reversed(parts))


def operands_of(node: ast.AST) -> list[ast.expr]:
    """What an expression combines, in the order in which Python evaluates it."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Call):
        first = node.args[0] if node.args else None
        listed = first.elts if isinstance(first, (ast.List, ast.Tuple)) else []
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return [*receiver, *listed, *node.args]
    return []


def place_within(site: Site, expression: ast.expr, frame: Frame) -> Site | None:
    """The place inside an expression of a frame from which a write was reached."""
    for place in (site, *site.callers()):
        if place.frame is frame and is_inside(place.node, expression):
            return place
    return None


def is_written_by(statement: ast.AST, name: str) -> bool:
    """`x += …`: the name is read to be written."""
    return (
        isinstance(statement, ast.AugAssign)
        and isinstance(statement.target, ast.Name)
        and statement.target.id == name
    )
