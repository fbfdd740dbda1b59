"""Questions about the text itself: the statement around a node, the names it reads, the calls in a body."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, TypeVar

from gradsight.interp.syntax_parts import parts_of, syntax_parts
from gradsight.model.sites import Frame
from gradsight.model.values import ClassValue, External, Pending, PythonModule, Scope

Node = TypeVar("Node", bound=ast.AST)
Answer = TypeVar("Answer")
BODIES = ("body", "orelse", "finalbody", "handlers", "cases")

SYMBOLS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip


def statement_around(node: ast.AST, frame: Frame) -> ast.AST | None:
    """The simple statement that holds a node of the running frame, or the header expression of a compound one."""
    function = frame.function
    holder: Any = function.node if function is not None else frame.unit
    # A node may be asked for in the body of a lambda and in that of the function around it.
    known: dict[Any, ast.AST | None] = node.__dict__.setdefault("statement_around", {})
    if holder not in known:
        body: Any = getattr(holder, "body", None) if function is not None else holder.tree
        known[holder] = (
            _descend(body, node) if isinstance(body, list) else body if isinstance(body, ast.AST) else None
        )
    return known[holder]


def _descend(body: list[ast.AST], node: ast.AST) -> ast.AST | None:
    line = getattr(node, "lineno", 0)
    for statement in body:
        last = getattr(statement, "end_lineno", None)
        if last is not None and not getattr(statement, "lineno", 0) <= line <= last:
            continue
        inner = [child for name in BODIES if isinstance(child := getattr(statement, name, None), list)]
        if not inner:
            if is_inside(node, statement):
                return statement
            continue
        for block in inner:
            found = _descend(block, node)
            if found is not None:
                return found
        for header in headers(statement):
            if is_inside(node, header):
                return header
    return None


def is_inside(node: ast.AST, statement: ast.AST) -> bool:
    """Whether a node is part of a statement; many are asked about one statement, so its parts are looked up once."""
    return id(node) in remembered(statement, "parts", _parts)


def _parts(statement: ast.AST) -> frozenset[int]:
    return frozenset(map(id, syntax_parts(statement)))


def conditions_around(node: ast.AST, frame: Frame) -> list[ast.AST]:
    """The conditional statements and expressions inside which a node of the running frame lies, outermost first."""
    function = frame.function
    body: Any = getattr(function.node, "body", None) if function is not None else frame.unit.tree
    found: list[ast.AST] = []
    todo = body if isinstance(body, list) else [body]
    while todo:
        holder = next((item for item in todo if any(inner is node for inner in syntax_parts(item))), None)
        if holder is None or holder is node:
            break
        if isinstance(holder, (ast.If, ast.IfExp, ast.Try, ast.Match, ast.While)):
            found.append(holder)
        todo = list(ast.iter_child_nodes(holder))
    return found


def headers(statement: ast.AST) -> Iterator[ast.AST]:
    """The expressions of a compound statement that are not inside its bodies."""
    for name, value in ast.iter_fields(statement):
        if name in BODIES:
            continue
        if isinstance(value, ast.AST):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, ast.AST))


def names_read(node: ast.AST) -> set[str]:
    """The names that an expression or statement loads."""
    known: frozenset[str] = remembered(node, "names_read", _names_read)
    return set(known)


def _names_read(node: ast.AST) -> frozenset[str]:
    return frozenset(
        inner.id
        for inner in syntax_parts(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)
    )


def remembered(node: Node, question: str, answer: Callable[[Node], Answer]) -> Answer:
    """What only the syntax of a node decides: worked out once and kept with the node, as long as it lives."""
    answers: dict[str, Answer] = node.__dict__
    if question not in answers:
        answers[question] = answer(node)
    return answers[question]


def set_on_self(cls: ast.AST) -> frozenset[str]:
    """The attributes that the methods of a class set on `self`."""
    return frozenset(
        node.attr
        for node in parts_of(cls, ast.Attribute)
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self"
    )


def remembered_of(cls: ClassValue, question: str, answer: Callable[[ClassValue], set[str]]) -> set[str]:
    """Names that the namespaces and texts of a class and its ancestors decide; found again where one of them has changed."""
    changes = sum(one.changes for one in cls.lineage() if isinstance(one, ClassValue))
    known = cls.remembered.get(question)
    if known is None or known[0] != changes:
        known = cls.remembered[question] = (changes, answer(cls))
    return known[1]


def own_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements of a body, nested ones too, without those of functions and classes defined in it."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for name in BODIES:
            inner = getattr(statement, name, None)
            if isinstance(inner, list):
                yield from own_statements(inner)


LEAVING = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort"})


def ends_program(statement: ast.AST | None) -> bool:
    """Whether a statement raises, or leaves the program: nothing behind it is meant to go on."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        return isinstance(called, (ast.Name, ast.Attribute)) and ast.unparse(called) in LEAVING
    return isinstance(statement, ast.Raise)


def refuses_without(node: ast.If | ast.IfExp, frame: Frame) -> bool:
    """Whether the running function raises where an `if` of it is not taken: in its `else`, or in the statement behind it."""
    arm = node.orelse
    if not isinstance(node, ast.If) or not isinstance(arm, list):
        return False
    if arm:
        return ends_program(arm[-1])
    function = frame.function
    return function is not None and node in remembered(function.node, "ifs_before_raise", ifs_before_raise)


def ifs_before_raise(function: ast.AST) -> frozenset[ast.If]:
    """The `if`, or the last `elif` of a chain, that returns and has a `raise` behind it."""
    body = getattr(function, "body", None)
    blocks = [body] if isinstance(body, list) else []
    for statement in own_statements(blocks[0] if blocks else []):
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            blocks += [inner for name in BODIES if isinstance(inner := getattr(statement, name, None), list)]
    found = set()
    for block in blocks:
        for statement, behind in pairwise(block):
            if isinstance(statement, ast.If) and ends_program(behind):
                last = statement
                while len(last.orelse) == 1 and isinstance(last.orelse[0], ast.If):
                    last = last.orelse[0]
                if not last.orelse and isinstance(last.body[-1], ast.Return):
                    found.add(last)
    return frozenset(found)


CUTTING_METHODS = frozenset({"detach", "detach_", "data"})


def cuts_what_it_is_given(function: ast.AST) -> bool:
    """Whether a text detaches a parameter, or what a loop takes out of something: `return state.detach()`."""
    return remembered(function, "cuts what it is given", _cuts_what_it_is_given)


def _cuts_what_it_is_given(function: ast.AST) -> bool:
    given: set[str] = set()
    cut: set[str] = set()
    for part in syntax_parts(function):
        if isinstance(part, ast.arg):
            given.add(part.arg)
        elif isinstance(part, (ast.For, ast.AsyncFor, ast.comprehension)):
            given |= {name.id for name in ast.walk(part.target) if isinstance(name, ast.Name)}
        elif isinstance(part, ast.Attribute) and part.attr in CUTTING_METHODS:
            if isinstance(part.value, ast.Name):
                cut.add(part.value.id)
    return not given.isdisjoint(cut)


def returns_value(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether some `return` of the function's own body gives a value (`return None` counts: it is said on purpose)."""
    return any(
        isinstance(statement, ast.Return) and statement.value is not None
        for statement in own_statements(function.body)
    )


def last_return(function: ast.AST) -> ast.AST | None:
    """What the last `return` of a function, or a lambda, gives."""
    if isinstance(function, ast.Lambda):
        return function.body
    body = getattr(function, "body", [])
    returns = [inner for inner in own_statements(body) if isinstance(inner, ast.Return)]
    return returns[-1] if returns else None


def computes_only(function: ast.AST) -> bool:
    """Whether a function goes one way and changes nothing: executed aside, it shows what it returns and leaves no trace.

    The one condition it may ask for is which inputs of a custom Function need a gradient.
    """
    for inner in syntax_parts(function):
        if isinstance(inner, BRANCHES_AND_EFFECTS):
            return False
        if isinstance(inner, (ast.If, ast.IfExp)) and not mentions_attribute(inner.test, "needs_input_grad"):
            return False
        if isinstance(inner, (ast.Attribute, ast.Subscript)) and not isinstance(inner.ctx, ast.Load):
            return False
        if isinstance(inner, ast.Call):
            name = called_attribute(inner)
            if (name.endswith("_") and not name.endswith("__")) or name in COLLECTS:
                return False
    return True


BRANCHES_AND_EFFECTS = (
    ast.For, ast.AsyncFor, ast.While, ast.Try, ast.With, ast.AsyncWith, ast.AugAssign, ast.Global, ast.Nonlocal, ast.Yield,
    ast.YieldFrom, ast.Await, ast.Raise, ast.Assert, ast.Delete, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    ast.Match, ast.NamedExpr,
)  # fmt: skip
COLLECTS = {
    "append",
    "extend",
    "update",
    "add",
    "insert",
    "pop",
    "clear",
    "setdefault",
    "put",
    "write",
    "backward",
    "step",
}


def called_attribute(node: ast.AST) -> str:
    """`step` for `optimizer.step()`, empty for anything else."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr
    return ""


def written_name(node: ast.AST) -> str:
    """The name that an in-place statement writes: `a` in `a += 1`, `a[0] = 1`, `a.mul_(2)`."""
    target: Any = node
    if isinstance(node, ast.AugAssign):
        target = node.target
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        target = node.func.value
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def restated(node: ast.AST) -> ast.operator | None:
    """The operator by which a statement updates its own target: `a[i] += v`, and `a[i] = a[i] + v` written out."""
    if isinstance(node, ast.AugAssign):
        return node.op
    if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp)):
        return None
    target, left = node.targets[0], node.value.left
    # A long sum is too deep to be written out, and is no name, attribute or item.
    if type(left) is not type(target):
        return None
    written = ast.dump(target).replace("Store()", "Load()")
    return node.value.op if ast.dump(left) == written else None


def base_name(node: ast.AST) -> str:
    """The name at the bottom of a chain of items; empty if an attribute lies on the way."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def mentions_attribute(node: ast.AST, name: str) -> bool:
    """Whether `.name` occurs anywhere in the expression."""
    return any(isinstance(inner, ast.Attribute) and inner.attr == name for inner in syntax_parts(node))


def names_library(node: ast.expr, scope: Scope | None) -> bool:
    """Whether an expression is the name of a library's module, or of one inside it, under whatever alias."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name):
        return False
    while scope is not None and node.id not in scope.names:
        scope = scope.outer
    return scope is not None and isinstance(scope.names[node.id], (External, Pending, PythonModule))


Augmentation = ast.AugAssign
"""`target op= value`."""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
CLASS_DEFINITION = ast.ClassDef


def spreads_keywords(node: ast.AST) -> bool:
    """Whether a call has `**options`."""
    return isinstance(node, ast.Call) and any(keyword.arg is None for keyword in node.keywords)


def spread_names(node: ast.AST) -> list[str]:
    """The names behind the stars of a call."""
    return [
        argument.value.id
        for argument in (node.args if isinstance(node, ast.Call) else ())
        if isinstance(argument, ast.Starred) and isinstance(argument.value, ast.Name)
    ]


def arm_not_taken(node: ast.AST, outcome: bool) -> list[ast.stmt]:
    """What an `if` leaves out when its condition has this outcome."""
    return (node.orelse if outcome else node.body) if isinstance(node, ast.If) else []


def guarded_growth(loop: ast.AST) -> tuple[tuple[str, tuple[ast.If, ...], bool], ...]:
    """The lists that a loop adds to inside of conditions: the name, the conditions from outside in, and the last one's arm."""
    return remembered(loop, "guarded_growth", lambda one: tuple(_growth(getattr(one, "body", []), (), True)))


def names_returned(function: ast.AST) -> frozenset[str]:
    """The names that stand in what a function returns."""
    return remembered(
        function,
        "names_returned",
        lambda one: frozenset(
            name
            for inner in ast.walk(one)
            if isinstance(inner, ast.Return) and inner.value is not None
            for name in names_read(inner.value)
        ),
    )


def _growth(
    body: list[ast.stmt], around: tuple[ast.If, ...], arm: bool
) -> Iterator[tuple[str, tuple[ast.If, ...], bool]]:
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _growth(statement.body, (*around, statement), True)
            yield from _growth(statement.orelse, (*around, statement), False)
        elif isinstance(statement, (ast.With, ast.For, ast.While, ast.Try)):
            yield from _growth(statement.body, around, arm)
        elif around and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            called = statement.value.func
            if isinstance(called, ast.Attribute) and called.attr in ("append", "extend", "add"):
                yield base_name(called.value), around, arm


def calls_backward(body: list[ast.stmt]) -> bool:
    """Whether some statement of a body calls a method that is named after backward."""
    return any(
        isinstance(inner, ast.Attribute) and "backward" in inner.attr
        for part in body
        for inner in syntax_parts(part)
    )


def clears_or_sets_gradients(node: ast.AST) -> bool:
    """Whether a text clears or sets gradients."""
    return any(
        isinstance(inner, ast.Attribute)
        and (inner.attr == "zero_grad" or (inner.attr == "grad" and not isinstance(inner.ctx, ast.Load)))
        for inner in syntax_parts(node)
    )


def decides_argument(call: ast.AST, name: str, conditions: list[ast.AST]) -> bool:
    """Whether one of these conditions decides an argument of a call: `retain_graph=True if i < last else False`."""
    given = next((one.value for one in getattr(call, "keywords", ()) if one.arg == name), None)
    return isinstance(given, ast.IfExp) and any(one is given for one in conditions)


def reads_data(node: ast.AST) -> bool:
    """Whether a text goes through the `.data` of something."""
    return any(isinstance(inner, ast.Attribute) and inner.attr == "data" for inner in syntax_parts(node))


def speaks_of_layers(node: ast.AST) -> bool:
    """Whether a text names `super` or `nn`."""
    return any(
        (isinstance(inner, ast.Name) and inner.id in ("super", "nn"))
        or (isinstance(inner, ast.Attribute) and inner.attr == "nn")
        for inner in syntax_parts(node)
    )


def names_called(function: ast.AST) -> set[str]:
    """The names that a function calls: `operator(x)`; a tensor cannot be called."""
    calls = (part for part in ast.walk(function) if isinstance(part, ast.Call))
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)}


def is_declared_otherwise(parameter: ast.arg) -> bool:
    """Whether a declaration names a class of another library: `operator: projectors.Operator`."""
    declared = parameter.annotation
    if not isinstance(declared, ast.Attribute) or "Tensor" in declared.attr:
        return False
    return not ast.unparse(declared).startswith(("torch.", "typing.", "np.", "numpy."))


def names_computed_with(function: ast.AST) -> frozenset[str]:
    """The names that a text uses as tensors: in arithmetic, by a method or an item, as arguments of torch's functions."""
    found: frozenset[str] = remembered(function, "names computed with", _names_computed_with)
    return found


def _names_computed_with(function: ast.AST) -> frozenset[str]:
    used: list[ast.AST] = []
    for node in syntax_parts(function):
        if isinstance(node, ast.BinOp):
            used += [node.left, node.right]
        elif isinstance(node, ast.UnaryOp):
            used.append(node.operand)
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            used.append(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            used += node.args
    return frozenset(node.id for node in used if isinstance(node, ast.Name))


def asks_for_membership(condition: ast.AST) -> bool:
    """Whether a condition asks if something is among others: `name in chosen`, `any(part in name for part in parts)`."""
    found: bool = remembered(condition, "asks for membership", _asks_for_membership)
    return found


def _asks_for_membership(condition: ast.AST) -> bool:
    asked = getattr(condition, "test", condition)
    return any(
        isinstance(part, ast.Compare) and isinstance(part.ops[0], (ast.In, ast.NotIn))
        for part in syntax_parts(asked)
    )


def named_last(node: ast.AST) -> str:
    """The last part of a dotted name, empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def short_text(node: ast.AST) -> str:
    """The source text of a node, short enough to speak of."""
    try:
        text = ast.unparse(node)
    except Exception:
        return ""
    return text if len(text) <= 40 else text[:37] + "..."


def written_target(node: ast.AST, called_inside: bool, by_library: bool, scope: Scope | None) -> ast.AST:
    """What a statement or call writes; the write may happen in what it calls, or in what goes on with its value."""
    if by_library and isinstance(node, ast.Return):
        return node.value or node
    if isinstance(node, ast.AugAssign):
        return node.target
    if not isinstance(node, ast.Call):
        return node
    if (called_inside or by_library) and node.args:
        return node.args[0]
    if not isinstance(node.func, ast.Attribute):
        return node.args[0] if node.args else node.func
    target = node.func.value
    return node.args[0] if node.args and names_library(target, scope) else target


def calls_base_before(function: Any, node: ast.AST) -> bool:
    """Whether a function calls the `__init__` of a base further up than a node, wherever that could be followed to."""
    line = getattr(node, "lineno", 0)
    return function is not None and any(
        inner.attr == "__init__" and inner.lineno < line for inner in parts_of(function.node, ast.Attribute)
    )


def sign_of(node: ast.AST) -> str:
    """The sign of an operator that was written as one: `*`, `*=`; empty for a call."""
    if isinstance(node, ast.AugAssign):
        return f"{SYMBOLS[type(node.op)]}="
    return SYMBOLS[type(node.op)] if isinstance(node, ast.BinOp) else ""


def hands_on_what_it_draws(node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> bool:
    """Whether the elements of a comprehension are those that its last clause goes through, or parts of them."""
    drawn = {inner.id for inner in syntax_parts(node.generators[-1].target) if isinstance(inner, ast.Name)}
    return isinstance(node.elt, ast.Name) and node.elt.id in drawn


def reads_what_it_draws(node: ast.ListComp | ast.SetComp) -> bool:
    """Whether the elements of a comprehension differ with what its clauses go through."""
    return remembered(node, "reads what it draws", _reads_what_it_draws)


def _reads_what_it_draws(node: ast.ListComp | ast.SetComp) -> bool:
    drawn = {name for clause in node.generators for name in _names_in([clause.target])}
    return not drawn.isdisjoint(_names_in([node.elt]))


COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


def _names_in(todo: list[ast.AST]) -> frozenset[str]:
    """The names in some nodes; those of a comprehension are gathered once, for all that stand around it."""
    names: set[str] = set()
    while todo:
        node = todo.pop()
        if isinstance(node, COMPREHENSIONS):
            names |= remembered(node, "names in it", lambda it: _names_in(list(ast.iter_child_nodes(it))))
        else:
            todo.extend(ast.iter_child_nodes(node))
            if isinstance(node, ast.Name):
                names.add(node.id)
    return frozenset(names)


def changes_items(loop: ast.AST) -> bool:
    """Whether a loop may change the objects that it goes through: a method of theirs, an attribute, a call that is given one.

    `for layer in layers: x = layer(x)` applies them, and they stay as they are.
    """
    return remembered(loop, "changes its items", _changes_items)


def _changes_items(loop: ast.AST) -> bool:
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    drawn = {inner.id for inner in syntax_parts(loop.target) if isinstance(inner, ast.Name)}
    for statement in loop.body:
        for part in syntax_parts(statement):
            if isinstance(part, ast.Call):
                given = [*part.args, *(keyword.value for keyword in part.keywords)]
                is_method = isinstance(part.func, ast.Attribute) and part.func.attr != "forward"
                if any(isinstance(one, ast.Name) and one.id in drawn for one in given):
                    return True
                if is_method and root_name(part.func) in drawn:
                    return True
            elif isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
                if root_name(part) in drawn:
                    return True
    return False


def root_name(node: ast.AST) -> str:
    """`torch` of `torch.jit.script(f)`."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def spoken_operator(node: ast.AST) -> str:
    """How a text names what it applies: a function or a method, an attribute, or `+` for any arithmetic."""
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        return "+"
    named = node.func if isinstance(node, ast.Call) else node
    return named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")


def freezes_some(node: ast.If) -> bool:
    """Whether an `if` does nothing but freeze what a loop comes by: `if "bias" in name: p.requires_grad = False`.

    Such a condition is there to tell some parameters from others.
    """
    return not node.orelse and any(
        isinstance(one, ast.Assign)
        and isinstance(one.targets[0], ast.Attribute)
        and one.targets[0].attr == "requires_grad"
        and isinstance(one.value, ast.Constant)
        and one.value.value is False
        for one in node.body
    )
