"""What an expression shares memory with.

*Root*: the name at the bottom of an expression that shares its memory (`x` of `x[0].view(-1)`).  A call is taken to return
a new tensor, unless it is a view, a layer that works in place, or a function of the same text that may hand back what it
was given.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gradsight.fixes.flags import may_be_flagged
from gradsight.fixes.names import (
    arguments,
    is_name,
    last_name,
    method_of,
    names_in,
    own_nodes,
    parameters,
    stored_in,
)
from gradsight.fixes.tree import COMPREHENSIONS, FORS, FUNCTIONS, FunctionNode, Tree

VIEWS = frozenset(
    """view view_as reshape reshape_as transpose t permute squeeze unsqueeze expand expand_as narrow select chunk split
    split_with_sizes tensor_split unbind detach flatten unflatten diagonal unfold as_strided real imag swapaxes swapdims
    movedim moveaxis contiguous to float double half bfloat16 cpu cuda type type_as requires_grad_ retain_grad values
    items keys parameters named_parameters buffers named_buffers state_dict children modules ravel atleast_1d
    atleast_2d atleast_3d hsplit vsplit dsplit as_tensor asarray from_numpy numpy squeeze_ unsqueeze_ zip enumerate
    reversed list tuple iter next get pop""".split()
)
LAYERS = frozenset(
    "Identity Flatten Unflatten Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout".split()
)


def root(node: ast.AST | None) -> ast.AST | None:
    """The name or attribute at the bottom of a chain of views and items; None when a call made the value anew."""
    while node is not None:
        if isinstance(node, (ast.Name, ast.Attribute)) and not is_view_attribute(node):
            return node
        if isinstance(node, (ast.Subscript, ast.Starred, ast.Attribute)):
            node = node.value
        elif isinstance(node, ast.Call):
            name = last_name(node.func)
            if name not in VIEWS and not (is_inplace_name(name) and method_of(node)):
                return None
            base = node.func.value if isinstance(node.func, ast.Attribute) else None
            is_method = base is not None and not is_name(base, "torch", "F", "np")
            node = base if is_method else next(iter(node.args), None)
        else:
            return None
    return None


def is_view_attribute(node: ast.AST) -> bool:
    """Whether an attribute shares the memory of what it is taken of."""
    return isinstance(node, ast.Attribute) and node.attr in ("T", "mT", "H", "mH", "data", "real", "imag")


def is_inplace_name(name: str) -> bool:
    """Whether a method's name says that it writes its tensor."""
    return name.endswith("_") and not name.startswith("_") and not name.endswith("__")


def roots(tree: Tree, node: ast.AST | None) -> list[ast.AST]:
    """Everything an expression may share memory with."""
    parts = _parts(tree, node)
    if parts is not None:
        return [one for part in parts for one in roots(tree, part)]
    found = root(node)
    return [found] if found is not None else []


def _parts(tree: Tree, node: ast.AST | None) -> list[ast.expr] | None:
    """The parts of an expression whose memory it may have; None where it is one piece."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, (ast.BoolOp, ast.Dict)):
        return node.values
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return node.elts
    if isinstance(node, (ast.NamedExpr, ast.Starred, ast.Await, ast.Subscript)):
        return [node.value]
    if isinstance(node, COMPREHENSIONS):
        made = [] if isinstance(node, ast.DictComp) else [node.elt]
        return [*(generator.iter for generator in node.generators), *made]
    if isinstance(node, ast.Call) and is_name(node.func, "zip", "enumerate"):
        return node.args
    return arguments(node) if isinstance(node, ast.Call) and hands_back(tree, node) else None


def hands_back(tree: Tree, call: ast.Call) -> bool:
    """Whether a call may return one of the tensors it was given."""
    if _may_write(call):
        return True
    name = last_name(call.func)
    if not name:
        return False
    index = _index(tree)
    return any(_returns_given(function) for function in index.functions.get(name, ())) or any(
        _makes_one_that_hands_back(index, value) for value in index.values.get(name, ())
    )


def _may_write(call: ast.Call) -> bool:
    """Whether a call gives back one of its arguments by what it is told: `inplace` or `out`."""
    return may_be_flagged(call) or any(word.arg == "out" for word in call.keywords)


@dataclass(frozen=True, slots=True)
class _Index:
    """The functions of a text by name, the `forward` of its classes, and the calls and lambdas that names get."""

    functions: dict[str, list[FunctionNode]]
    forwards: dict[str, FunctionNode]
    values: dict[str, list[ast.Call | ast.Lambda]]


def _index(tree: Tree) -> _Index:
    known = tree.notes.get("sharing")
    if isinstance(known, _Index):
        return known
    index = _Index({}, {}, {})
    tree.notes["sharing"] = index
    for node in tree.statements():
        if isinstance(node, FUNCTIONS):
            if node.name != "forward":
                index.functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and inner.name == "forward":
                    index.forwards[node.name] = inner
        elif isinstance(node, ast.Assign) and isinstance(node.value, (ast.Call, ast.Lambda)):
            for target in node.targets:
                index.values.setdefault(last_name(target), []).append(node.value)
    return index


def _makes_one_that_hands_back(index: _Index, value: ast.Call | ast.Lambda) -> bool:
    """Whether a value, once called, may return what it is given: a lambda, a layer or a module of the text."""
    if isinstance(value, ast.Lambda):
        return bool({one.arg for one in value.args.args} & _touched(value.body))
    made = last_name(value.func)
    if made in LAYERS or may_be_flagged(value):
        return True
    return made in index.forwards and _returns_given(index.forwards[made])


def _returns_given(function: FunctionNode) -> bool:
    """Whether a function returns a parameter, a part of one, or a name that may have been bound to one."""
    given = parameters(function) - {"self", "cls"}
    known = -1
    while known < len(given):
        known = len(given)
        for node in own_nodes(function):
            if isinstance(node, ast.Assign) and given & _touched(node.value):
                given |= names_in(*node.targets)
            elif isinstance(node, FORS) and given & _touched(node.iter):
                given |= names_in(node.target)
    rebound = _surely_rebound(function)
    return any(
        isinstance(node, (ast.Return, ast.Yield)) and (given - rebound) & _touched(node.value)
        for node in own_nodes(function)
    )


def _touched(node: ast.AST | None) -> set[str]:
    """The names that an expression may share memory with, seen without the functions of the text."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return {name for value in node.elts for name in _touched(value)}
    if isinstance(node, ast.IfExp):
        return _touched(node.body) | _touched(node.orelse)
    if isinstance(node, ast.Call) and _may_write(node):
        return {name for value in node.args for name in _touched(value)}
    found = root(node)
    return {found.id} if isinstance(found, ast.Name) else set()


def _surely_rebound(function: FunctionNode) -> set[str]:
    """The names that the body of a function gives a new value at its top level, last of all."""
    found: set[str] = set()
    for statement in function.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name):
                if _touched(statement.value):
                    found.discard(target.id)
                else:
                    found.add(target.id)
            continue
        if not isinstance(statement, ast.AugAssign):
            found -= stored_in(statement)
    return found
