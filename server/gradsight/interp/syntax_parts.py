"""The parts of a syntax node: itself and all that it holds, in the order of `ast.walk`.

Contexts and operators hold nothing and have no place: they are left out, and whoever wants one reads the field of the node
that has it.  What a class of nodes can hold is looked up once per class, so that a walk costs what the nodes cost.
"""

from __future__ import annotations

import ast
from typing import Any, TypeVar

WITHOUT_NODES = frozenset({
    "arg", "asname", "attr", "conversion", "ctx", "cls_name", "id", "is_async", "kind", "kwd_attrs", "level", "module", "name",
    "op", "ops", "rest", "simple", "str", "tag", "type_comment",
})  # fmt: skip
"""Fields that hold a name, a number, a context or an operator, whatever node they belong to."""
PLAIN: dict[str, frozenset[str]] = {
    "Constant": WITHOUT_NODES | {"value"},
    "MatchSingleton": frozenset({"value"}),
    "Global": frozenset({"names"}),
    "Nonlocal": frozenset({"names"}),
    "TypeAlias": frozenset(),
}
"""The same for nodes whose fields are called like others and hold something else."""
PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")
_holding: dict[type, tuple[str, ...]] = {}


def syntax_parts(node: ast.AST) -> list[ast.AST]:
    """A node and everything in it; those of a function are looked up once, as long as the function is as it is."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        known: list[ast.AST] | None = node.__dict__.get("syntax parts")
        if known is None:
            known = node.__dict__["syntax parts"] = _walked(node)
        return known
    return _walked(node)


Part = TypeVar("Part", bound=ast.AST)
ByClass = dict[type[ast.AST], list[Any]]
SORTED = "parts by class"


def parts_of(node: ast.AST, kind: type[Part]) -> list[Part]:
    """The parts of a node that are of one class; those of functions and classes are sorted once."""
    return sorted_parts(node).get(kind, [])


def sorted_parts(node: ast.AST) -> ByClass:
    """The parts of a node by their classes: for whoever asks several times of a statement."""
    known: ByClass | None = node.__dict__.get(SORTED)
    return known if known is not None else _sorted_parts(node)


def _sorted_parts(node: ast.AST) -> ByClass:
    found: ByClass = {}
    if isinstance(node, ast.ClassDef):
        pieces: list[ast.AST] = [
            *node.bases,
            *node.keywords,
            *node.decorator_list,
            *getattr(node, "type_params", ()),
            *node.body,
        ]
        found[ast.ClassDef] = [node]
        for piece in pieces:
            for kind, parts in (piece.__dict__.get(SORTED) or _sorted_parts(piece)).items():
                found.setdefault(kind, []).extend(parts)
        node.__dict__[SORTED] = found
        return found
    for part in syntax_parts(node):
        kind = part.__class__
        if kind in found:
            found[kind].append(part)
        else:
            found[kind] = [part]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        node.__dict__[SORTED] = found
    return found


def _walked(node: ast.AST) -> list[ast.AST]:
    found = [node]
    for one in found:
        kind = one.__class__
        fields = _holding.get(kind)
        if fields is None:
            fields = _holding[kind] = fields_with_nodes(kind)
        for name in fields:
            value = getattr(one, name, None)
            if value.__class__ is list:
                # `{**others}` has no key there, and an argument without a default none of those.
                found += value if None not in value else [item for item in value if item is not None]
            elif value is not None:
                found.append(value)
    return found


def fields_with_nodes(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a class of nodes that can hold nodes, in their order."""
    plain = PLAIN.get(kind.__name__, WITHOUT_NODES)
    return tuple(name for name in kind._fields if name not in plain)


def assigned(text: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """Every target of the assignments in a text, with its value: of `self.net, self.size = net, 3` two."""
    return [
        pair
        for node in parts_of(text, ast.Assign)
        for target in node.targets
        for pair in pairs(target, node.value)
    ]


def pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Targets with their values; those of an unpacked call all have the call."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        return [(target, value)]
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        return [pair for part, inner in zip(target.elts, value.elts) for pair in pairs(part, inner)]
    return [(part, value) for part in target.elts]


def expression_in(text: str, node: ast.AST) -> ast.expr | None:
    """The expression that a text is, all of it at the place of a node, which keeps it; None where it is none."""
    known: dict[str, ast.expr | None] = node.__dict__.setdefault("expressions in texts", {})
    if text not in known:
        known[text] = _expression_at(
            text, {name: getattr(node, name) for name in PLACE if hasattr(node, name)}
        )
    return known[text]


def _expression_at(text: str, place: dict[str, int]) -> ast.expr | None:
    try:
        expression = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for part in syntax_parts(expression):
        part.__dict__.update(place)
    return expression


def may_recur(test: ast.expr) -> bool:
    """Whether a condition can hold in many rounds: `step == 10` and `state is None` hold in one, `step % 10 == 0` in many."""
    parts = list(ast.walk(test))
    return any(isinstance(part, ast.Mod) for part in parts) or not any(
        isinstance(part, (ast.Eq, ast.Is)) for part in parts
    )


def attributes_called(function: ast.AST) -> set[str]:
    """The attributes that a function calls, directly or by a name that it gives them: `f = ctx.f`, then `f(x)`."""
    calls = parts_of(function, ast.Call)
    called = {call.func.attr for call in calls if isinstance(call.func, ast.Attribute)}
    names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
    for assignment in parts_of(function, ast.Assign):
        for target in assignment.targets:
            pairs = [(target, assignment.value)]
            if isinstance(target, ast.Tuple) and isinstance(assignment.value, ast.Tuple):
                pairs = list(zip(target.elts, assignment.value.elts))
            called |= {
                value.attr
                for name, value in pairs
                if isinstance(name, ast.Name) and name.id in names and isinstance(value, ast.Attribute)
            }
    return called
