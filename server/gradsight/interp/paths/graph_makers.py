"""Which unknown callables of a text must have brought the graph that its backward needs, and which unknown object steps.

`loss.backward()` raises unless something has brought a graph.  *Maker*: a parameter of the function, or an attribute of
`self`, that is called on the way to the loss.  Where no other evidence tells which of them are modules, all of them are taken for
modules, whatever their names: of `g(f(x))` each gets gradients if the other does.  In the same way the only thing with a `step()`
beside a backward is what applies the gradients.  *Way*: what stands on the way to a loss, or to what a helper returns.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass

from gradsight.interp.paths.grad_guards import name_of
from gradsight.interp.syntax import own_statements, remembered
from gradsight.interp.syntax_parts import assigned, parts_of, syntax_parts
from gradsight.model.name_hints import suggests

Keys = frozenset[str]
NOTHING: Keys = frozenset()
CUTS = frozenset({"detach", "data", "item", "numpy", "tolist"})
"""What stands behind one of these brings no graph."""
WITHOUT_GRADIENTS = frozenset({"no_grad", "inference_mode"})
MOST_NAMES = 200
"""A text that binds more has more to it than a walk along its names shows."""


@dataclass(frozen=True, slots=True)
class Way:
    """What the values of some expressions are computed by."""

    makers: Keys = NOTHING
    handed: Keys = NOTHING
    """What the calls on the way are given by a name of its own: a parameter, or an attribute of `self`."""
    calls: frozenset[ast.Call] = frozenset()
    through: Keys = NOTHING
    """The names, not given to the function, that what is called begins with: functions, libraries, objects."""
    final: frozenset[ast.Call] = frozenset()
    """Calls whose results are the values, or parts of them, but for factors and sums."""
    unseen: frozenset[ast.Call] = frozenset()
    """Calls that may have brought a graph by something that the text does not show."""
    groups: frozenset[Keys] = frozenset()
    """The makers of each of the values."""


def way_to_backward(function: ast.FunctionDef) -> Way | None:
    """The way to the losses that a function differentiates; None where it differentiates none, or binds too much."""
    found: Way | None = remembered(function, "way to backward", _way_to_backward)
    return found


def way_to_return(function: ast.FunctionDef) -> Way | None:
    """The way to what a function returns."""
    found: Way | None = remembered(function, "way to return", _way_to_return)
    return found


def things_handed_over(scopes: list[ast.AST]) -> Keys:
    """What is given to the calls on the way to the backwards of these texts, where nothing that is called there brings the graph."""
    ways = [way for one in functions_of(scopes) if (way := way_to_backward(one)) is not None]
    if any(way.makers for way in ways):
        return NOTHING
    return NOTHING.union(*(way.handed for way in ways))


def graph_makers(scopes: list[ast.AST]) -> list[Keys]:
    """What each backward in these texts can have its graph from; empty where that may be something else."""
    ways = [way_to_backward(one) for one in functions_of(scopes)]
    if any(way is None or way.unseen for way in ways):
        return []
    return [makers for way in ways if way is not None for makers in way.groups]


def stepped_things(scopes: list[ast.AST]) -> Keys:
    """What has a `step()` without arguments in a loop that has a backward, by its key."""
    return NOTHING.union(*(remembered(one, "stepped things", _stepped_in) for one in functions_of(scopes)))


def functions_of(scopes: list[ast.AST]) -> Iterator[ast.FunctionDef]:
    """The functions of texts that hold a backward."""
    for scope in scopes:
        for one in [scope] if isinstance(scope, ast.FunctionDef) else parts_of(scope, ast.FunctionDef):
            if remembered(one, "differentiated", _differentiated):
                yield one


def _differentiated(text: ast.AST) -> list[ast.expr]:
    """What `backward()` is called on."""
    return [
        call.func.value
        for call in parts_of(text, ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward" and not call.args
    ]


class Flow:
    """What the names of one function were computed from, and by which makers."""

    def __init__(self, function: ast.FunctionDef) -> None:
        signature = function.args
        named = [*signature.posonlyargs, *signature.args, *signature.kwonlyargs]
        self.parameters = {one.arg for one in named}
        self.values: dict[str, list[ast.expr]] = {}
        self.unrecorded = frozenset(
            part
            for block in parts_of(function, ast.With)
            if is_unrecorded(block)
            for part in syntax_parts(block)
        )
        for target, value in assigned(function):
            self.note(target, value)
        for longer in parts_of(function, ast.AugAssign):
            self.note(longer.target, longer.value)
        for declared in parts_of(function, ast.AnnAssign):
            if declared.value is not None:
                self.note(declared.target, declared.value)
        self.known: dict[str, Keys] = {}
        self.calls: set[ast.Call] = set()
        self.unseen: set[ast.Call] = set()
        self.handed: set[str] = set()

    def way_to(self, nodes: list[ast.expr]) -> Way | None:
        if len(self.values) > MOST_NAMES:
            return None
        makers = self.makers_behind(nodes)
        named = {root_of(call.func) for call in self.calls} - self.parameters - {"", "self"}
        return Way(
            makers,
            frozenset(self.handed),
            frozenset(self.calls),
            frozenset(named - self.values.keys()),
            self.final_calls(nodes),
            frozenset(self.unseen),
            frozenset(self.makers_behind([node]) for node in nodes),
        )

    def note(self, target: ast.expr, value: ast.expr) -> None:
        name = key_of_name(target)
        if name and value not in self.unrecorded:
            self.values.setdefault(name, []).append(value)

    def makers_behind(self, nodes: list[ast.expr]) -> Keys:
        """What is called on the way to the values of expressions."""
        found: set[str] = set()
        todo: list[ast.AST] = [*nodes]
        while todo:
            node = todo.pop()
            name = key_of_name(node)
            if name:
                found |= self.makers_behind_name(name)
            elif isinstance(node, ast.Attribute) and node.attr in CUTS:
                continue
            elif isinstance(node, ast.Call):
                self.calls.add(node)
                given = [*node.args, *(one.value for one in node.keywords)]
                self.handed |= {key for one in given if self.is_outside(key := key_of_name(one))}
                if not given or not self.may_make(node):
                    todo.extend(ast.iter_child_nodes(node))
                    continue
                key = key_of_name(node.func)
                # `objective = Objective(net)`, and then `objective(x)`.
                behind = self.makers_behind(given) | self.makers_behind_name(key)
                if self.is_outside(key):
                    found |= behind | {key}
                elif behind:
                    # A function that can be seen passes the graph on.
                    found |= behind
                else:
                    # What it makes of data alone may have one.
                    self.unseen.add(node)
            else:
                todo.extend(ast.iter_child_nodes(node))
        return frozenset(found)

    def final_calls(self, nodes: list[ast.expr]) -> frozenset[ast.Call]:
        """The calls that make what the expressions stand for: `net.step(x)` of `out = net.step(x)` and `sum(out.values()) / n`."""
        found: set[ast.Call] = set()
        seen: set[str] = set()
        todo: list[ast.expr] = [*nodes]
        while todo:
            node = todo.pop()
            name = key_of_name(node)
            if name:
                if name not in seen:
                    seen.add(name)
                    todo.extend(self.values.get(name, []))
            elif isinstance(node, (ast.Subscript, ast.Attribute)):
                todo.append(node.value)
            elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult, ast.Div)):
                todo.extend((node.left, node.right))
            elif isinstance(node, ast.Call):
                owner = node.func.value if isinstance(node.func, ast.Attribute) else None
                if isinstance(node.func, ast.Name) and node.func.id == "sum":
                    todo.extend(node.args)
                elif owner is None or is_given_something(node) or self.is_outside(key_of_name(owner)):
                    found.add(node)
                else:
                    todo.append(owner)
            elif isinstance(node, (ast.GeneratorExp, ast.ListComp)):
                todo.extend((node.elt, *(one.iter for one in node.generators)))
        return frozenset(found)

    def is_outside(self, key: str) -> bool:
        """Whether a key names what the function was given, or what its object has."""
        return key in self.parameters or key.startswith("self.")

    def makers_behind_name(self, name: str) -> Keys:
        if name not in self.known:
            # A name that is computed from itself brings nothing new by that.
            self.known[name] = NOTHING
            self.known[name] = self.makers_behind(self.values.get(name, []))
        return self.known[name]

    def may_make(self, call: ast.Call) -> bool:
        """Whether what is called has a name of its own that is neither a loss, a class nor built into Python."""
        key = key_of_name(call.func)
        if not key or suggests("loss", key):
            return False
        return key in self.parameters or "." in key or not (key[0].isupper() or hasattr(builtins, key))


def is_unrecorded(block: ast.With) -> bool:
    """`with torch.no_grad():`."""
    return any(
        isinstance(item.context_expr, ast.Call) and name_of(item.context_expr.func) in WITHOUT_GRADIENTS
        for item in block.items
    )


def is_given_something(call: ast.Call) -> bool:
    return bool(call.args or call.keywords)


def key_of_name(node: ast.AST) -> str:
    """`x`, or `self.x`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return f"self.{node.attr}"
    return ""


def root_of(node: ast.AST) -> str:
    """The name that an expression begins with: `agent` of `agent.critics[0](x)`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _way_to_backward(function: ast.FunctionDef) -> Way | None:
    losses = _differentiated(function)
    return Flow(function).way_to(losses) if losses else None


def _way_to_return(function: ast.FunctionDef) -> Way | None:
    results = [
        one.value for one in own_statements(function.body) if isinstance(one, ast.Return) and one.value
    ]
    return Flow(function).way_to(results) if results else None


def _stepped_in(function: ast.FunctionDef) -> Keys:
    loops = [*parts_of(function, ast.For), *parts_of(function, ast.While)]
    return frozenset(
        key
        for loop in loops
        if _differentiated(loop)
        for call in parts_of(loop, ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "step" and not is_given_something(call)
        if (key := key_of_name(call.func.value)) and not suggests("counts steps", key)
    )
