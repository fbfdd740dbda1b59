"""Write a tensor operation out of place: the statement gives its name a new tensor instead of changing the old one.

A *write* is one in-place operation in a statement; its *target* is the expression that is written.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gradsight.fixes.aliases import Standing, is_read_after, reaching, reads, standing
from gradsight.fixes.calls import without_keyword
from gradsight.fixes.forms import BY_CLONE, FUNCTIONS, INPLACE, OPERATORS, WITH_TWIN
from gradsight.fixes.indexes import is_spared
from gradsight.fixes.lines import insert_before, is_compound
from gradsight.fixes.names import is_local, meaning
from gradsight.fixes.sharing import root
from gradsight.fixes.tree import Patch, Tree, patched

SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.MatMult: "@", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
TIGHTNESS: dict[type[ast.operator], int] = {
    ast.BitOr: 1, ast.BitXor: 2, ast.BitAnd: 3, ast.LShift: 4, ast.RShift: 4, ast.Add: 5, ast.Sub: 5,
    ast.Mult: 6, ast.MatMult: 6, ast.Div: 6, ast.FloorDiv: 6, ast.Mod: 6, ast.Pow: 8,
}  # fmt: skip
OF_SYMBOL = {symbol: kind for kind, symbol in SYMBOLS.items()}


@dataclass(frozen=True, slots=True)
class Write:
    """One in-place operation: `form` is augmented, item, method, function, flag, layer or out."""

    form: str
    node: ast.AST
    target: ast.AST | None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A statement rewritten: by a new value or by a clone that is then written; and who else saw the old tensor."""

    how: str
    name: str
    patches: tuple[Patch, ...]
    standing: Standing


def writes_in(tree: Tree, statement: ast.stmt) -> Iterator[Write]:
    """The in-place operations of a statement itself, not of the blocks inside it."""
    if isinstance(statement, ast.AugAssign):
        yield Write("augmented", statement, statement.target)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        if isinstance(statement.targets[0], ast.Subscript):
            yield Write("item", statement, statement.targets[0])
    for node in _own_expressions(statement):
        if isinstance(node, ast.Call) and not _is_link(tree, node):
            write = _call_write(tree, node)
            if write is not None:
                yield write


def _own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement itself; a lambda is a function of its own."""
    waiting = [
        child for child in ast.iter_child_nodes(statement) if not isinstance(child, (ast.stmt, ast.Lambda))
    ]
    while waiting:
        node = waiting.pop(0)
        yield node
        waiting.extend(
            child for child in ast.iter_child_nodes(node) if not isinstance(child, (ast.stmt, ast.Lambda))
        )


def _is_link(tree: Tree, call: ast.Call) -> bool:
    """Whether a call is the receiver of a further in-place method: `x.mul_(a)` in `x.mul_(a).add_(b)`."""
    attribute = tree.parents.get(call)
    outer = tree.parents.get(attribute) if isinstance(attribute, ast.Attribute) else None
    return isinstance(outer, ast.Call) and outer.func is attribute and _method(outer) in INPLACE


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _call_write(tree: Tree, call: ast.Call) -> Write | None:
    name = meaning(tree, call.func)
    for keyword in call.keywords:
        if (
            keyword.arg == "inplace"
            and isinstance(keyword.value, ast.Constant)
            and keyword.value.value is True
        ):
            if name.rpartition(".")[2][:1].isupper():
                return Write("layer", call, None)
            if name:
                return Write("flag", call, call.args[0] if call.args else None)
        if keyword.arg == "out" and name.startswith("torch."):
            return Write("out", call, keyword.value)
    if name:
        package, _, last = name.rpartition(".")
        if package in ("torch", "torch.nn.functional") and last in FUNCTIONS and call.args:
            return Write("function", call, call.args[0])
        return None
    if _method(call) in INPLACE:
        return Write("method", call, call.func.value)  # type: ignore[attr-defined]
    return None


def rewrite(tree: Tree, statement: ast.stmt, write: Write) -> Rewrite | None:
    """The statement with one write done out of place, or None when that cannot be written."""
    if write.form == "augmented":
        return _augmented(tree, statement, write)
    if write.form == "item":
        return _cloned_first(tree, statement, write.target)
    if write.form == "layer":
        return _layer(tree, write)
    return _call(tree, statement, write)


# y *= 3


def _augmented(tree: Tree, statement: ast.stmt, write: Write) -> Rewrite | None:
    assert isinstance(statement, ast.AugAssign)
    target = statement.target
    if isinstance(target, ast.Subscript):
        if not is_list(tree, target.value, statement):
            return _cloned_first(tree, statement, target)
        if _has_call(target):
            return None
    written = tree.segment(target)
    symbol = SYMBOLS[type(statement.op)]
    start, end = tree.end(target), tree.start(statement.value)
    between = tree.text[start:end]
    sign = between.index(symbol + "=")
    patches = [Patch(start + sign, start + sign + len(symbol) + 1, f"= {written} {symbol}")]
    if "(" not in between[sign:] and needs_parentheses(statement.value, statement.op):
        patches += [Patch(end, end, "("), Patch(tree.end(statement.value), tree.end(statement.value), ")")]
    return Rewrite("new", written, tuple(patches), _standing(tree, target, statement))


def needs_parentheses(value: ast.AST, operator: ast.operator) -> bool:
    """Whether an expression has to be bracketed to stand on the right side of an operator."""
    if isinstance(value, ast.BinOp):
        inner, outer = TIGHTNESS[type(value.op)], TIGHTNESS[type(operator)]
        return inner < outer or (inner == outer and not isinstance(operator, ast.Pow))
    if isinstance(value, ast.UnaryOp):
        return isinstance(value.op, ast.Not)
    loose = (
        ast.IfExp,
        ast.BoolOp,
        ast.Compare,
        ast.Lambda,
        ast.NamedExpr,
        ast.Tuple,
        ast.Yield,
        ast.YieldFrom,
    )
    return isinstance(value, loose)


# y[0] = 1, x[0].mul_(2), k.diagonal().add_(1)


def _cloned_first(tree: Tree, statement: ast.stmt, target: ast.AST | None) -> Rewrite | None:
    """Clone what is written through an item or a view, just before the write."""
    base = written_base(tree, target, statement)
    if base is None or _has_call(base):
        return None
    if isinstance(base, ast.Name) and not is_local(tree, base.id, statement):
        return None
    name = tree.segment(base)
    patch = insert_before(tree, statement, f"{name} = {name}.clone()")
    if patch is None:
        return None
    return Rewrite("clone", name, (patch,), _standing(tree, base, statement, target))


def written_base(tree: Tree, target: ast.AST | None, statement: ast.stmt) -> ast.AST | None:
    """The whole tensor behind an item or a view; an entry of a list is whole in itself."""
    inner = target
    while isinstance(inner, ast.Subscript):
        if is_list(tree, inner.value, statement):
            return inner
        inner = inner.value
    return root(target)


def is_list(tree: Tree, node: ast.AST, place: ast.stmt) -> bool:
    """Whether an expression is plainly a list or dict of the text, whose entries are things of their own."""
    if not isinstance(node, ast.Name):
        return False
    bindings, _, argument = reaching(tree, node.id, place, tree.scope(place))
    if argument or not bindings:
        return False
    containers = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Tuple)
    return all(
        isinstance(one.value, containers)
        or (isinstance(one.value, ast.BinOp) and isinstance(one.value.left, ast.List))
        or (isinstance(one.value, ast.Call) and isinstance(one.value.func, ast.Name) and one.value.func.id in ("list", "dict"))
        for one in bindings
    )  # fmt: skip


def _has_call(node: ast.AST) -> bool:
    return any(isinstance(one, (ast.Call, ast.Await)) for one in ast.walk(node))


# x.mul_(w), torch.relu_(x), F.relu(x, inplace=True), torch.mul(x, w, out=x)


def _call(tree: Tree, statement: ast.stmt, write: Write) -> Rewrite | None:
    call = write.node
    assert isinstance(call, ast.Call)
    chain_root = _chain_root(call) if write.form == "method" else write.target
    if not isinstance(chain_root, (ast.Name, ast.Attribute)):
        base = root(chain_root)
        if base is None:
            return _of_temporary(tree, write)
        return _cloned_first(tree, statement, chain_root)
    if isinstance(chain_root, ast.Attribute) and chain_root.attr in ("data", "grad"):
        return None
    name = tree.segment(chain_root)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Tuple):
        return _tuple_of_calls(tree, statement)
    if isinstance(chain_root, ast.Name) and not is_local(tree, chain_root.id, statement):
        return None
    whole = getattr(statement, "value", None) is call
    changed = _out_of_place(tree, write, name, operator=whole)
    if changed is None:
        return None
    if isinstance(statement, ast.Expr) and whole:
        start = tree.start(statement)
        patches = _prefixed(changed, start, f"{name} = ")
        return Rewrite("new", name, patches, _standing(tree, chain_root, statement))
    return _in_expression(tree, statement, write, chain_root, changed)


def _prefixed(patches: tuple[Patch, ...], start: int, text: str) -> tuple[Patch, ...]:
    """Patches with a text put in front of all of them."""
    if patches and min(patches).start == start:
        first = min(patches)
        rest = tuple(one for one in patches if one is not first)
        return (Patch(first.start, first.end, text + first.text), *rest)
    return (Patch(start, start, text), *patches)


def _in_expression(
    tree: Tree, statement: ast.stmt, write: Write, target: ast.AST, changed: tuple[Patch, ...]
) -> Rewrite | None:
    """A write whose result is used: the written name gets the new value too where somebody still reads it."""
    name = tree.segment(target)
    known = _standing(tree, target, statement)
    if _is_in_comprehension(tree, write.node, statement):
        known.reasons.append(f"{name} belongs to the comprehension")
        return Rewrite("new", name, changed, known)
    if _assigns_only(statement, name):
        return Rewrite("new", name, changed, known)
    is_last = isinstance(statement, ast.Return) and isinstance(target, ast.Name)
    read = isinstance(target, ast.Attribute) or is_read_after(tree, name, statement, tree.scope(statement))
    others = sum(tree.segment(node) == name for node in ast.walk(statement) if type(node) is type(target)) - 1
    if (is_last or not read) and others == 0:
        return Rewrite("new", name, changed, known)
    if is_compound(statement) or others:
        return None
    start, end = tree.start(write.node), tree.end(write.node)
    inner = tuple(Patch(one.start - start, one.end - start, one.text) for one in changed)
    before = insert_before(tree, statement, f"{name} = {patched(tree.text[start:end], inner)}")
    if before is None or "\n" in tree.text[start:end]:
        return None
    return Rewrite("new", name, (before, Patch(start, end, name)), known)


def _assigns_only(statement: ast.stmt, name: str) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and ast.unparse(statement.targets[0]) == name
    )


def _is_in_comprehension(tree: Tree, node: ast.AST, statement: ast.stmt) -> bool:
    for parent in tree.ancestors(node):
        if parent is statement:
            return False
        if isinstance(parent, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return True
    return False


def _tuple_of_calls(tree: Tree, statement: ast.Expr) -> Rewrite | None:
    """`a.mul_(2), b.mul_(3)` becomes `a, b = a * 2, b * 3`."""
    assert isinstance(statement.value, ast.Tuple)
    patches: list[Patch] = []
    names: list[str] = []
    merged = Standing(read_later=True)
    for element in statement.value.elts:
        write = _call_write(tree, element) if isinstance(element, ast.Call) else None
        if write is None or write.form != "method":
            return None
        target = _chain_root(write.node)
        if not isinstance(target, ast.Name) or target.id in names:
            return None
        if not is_local(tree, target.id, statement):
            return None
        changed = _out_of_place(tree, write, target.id, operator=True)
        if changed is None:
            return None
        names.append(target.id)
        patches.extend(changed)
        one = standing(tree, target.id, statement)
        merged.reasons.extend(reason for reason in one.reasons if reason not in merged.reasons)
        merged.argument = merged.argument or one.argument
        merged.read_later = merged.read_later and one.read_later
    if any(reads(argument, name) for name in names for argument in _arguments(statement.value)):
        return None
    start = tree.start(statement)
    return Rewrite(
        "new", " and ".join(names), _prefixed(tuple(patches), start, f"{', '.join(names)} = "), merged
    )


def _arguments(node: ast.Tuple) -> Iterator[ast.AST]:
    for element in node.elts:
        if isinstance(element, ast.Call):
            yield from element.args
            yield from (keyword.value for keyword in element.keywords)


def _chain_root(call: ast.AST) -> ast.AST:
    """What the first in-place method of a chain is called on."""
    node = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in INPLACE:
        node = node.func.value
    return node


def _out_of_place(tree: Tree, write: Write, name: str, operator: bool) -> tuple[Patch, ...] | None:
    """The patches that turn an in-place call into one that returns a new tensor."""
    call = write.node
    assert isinstance(call, ast.Call)
    if write.form == "flag":
        patch = without_keyword(tree, call, "inplace")
        return (patch,) if patch is not None else None
    if write.form == "out":
        patch = without_keyword(tree, call, "out")
        return (patch,) if patch is not None else None
    if write.form == "function":
        end = tree.end(call.func)
        return (Patch(end - 1, end, ""),)
    links = list(_links(call))
    root_name = _chain_root(call)
    if isinstance(root_name, ast.Name) and any(
        reads(given, root_name.id) for link in links[:-1] for given in _given(link)
    ):
        # What a later link of the chain is given has already been changed by an earlier one.
        return None
    methods = [_method(link) for link in links]
    if len(links) == 1:
        special = _single(tree, call, name, operator)
        if special is not None:
            return special
    if all(method in WITH_TWIN for method in methods):
        return tuple(Patch(tree.end(link.func) - 1, tree.end(link.func), "") for link in links)
    if any(method in BY_CLONE for method in methods):
        place = tree.end(_chain_root(call))
        return (Patch(place, place, ".clone()"),)
    return None


def out_of_place_value(tree: Tree, write: Write) -> str | None:
    """The value of an in-place call, as an expression that changes nothing."""
    call = write.node
    target = _chain_root(call) if write.form == "method" else write.target
    if not isinstance(call, ast.Call) or not isinstance(target, ast.Name):
        return None
    changed = _out_of_place(tree, write, target.id, operator=True)
    if changed is None:
        return None
    start, end = tree.start(call), tree.end(call)
    return patched(
        tree.text[start:end], tuple(Patch(one.start - start, one.end - start, one.text) for one in changed)
    )


def _single(tree: Tree, call: ast.Call, name: str, operator: bool) -> tuple[Patch, ...] | None:
    """The shorter ways to write one method: an operator, or a function that fills a new tensor."""
    method = _method(call)
    start, end = tree.start(call), tree.end(call)
    plain = len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred)
    if "\n" in tree.text[start:end] or "\r" in tree.text[start:end] or "#" in tree.text[start:end]:
        return None
    if method in OPERATORS and plain and operator:
        kind = OF_SYMBOL[OPERATORS[method]]
        value = tree.segment(call.args[0])
        if needs_parentheses(call.args[0], kind()):
            value = f"({value})"
        return (Patch(start, end, f"{name} {OPERATORS[method]} {value}"),)
    return None


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _links(call: ast.AST) -> Iterator[ast.Call]:
    while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in INPLACE:
        yield call
        call = call.func.value


def _of_temporary(tree: Tree, write: Write) -> Rewrite | None:
    """A write to a value that no name holds: only the operation itself changes."""
    changed = _out_of_place(tree, write, "", operator=False)
    if changed is None or any(".clone()" in patch.text for patch in changed):
        return None
    return Rewrite("new", "the value", changed, Standing(read_later=True))


# nn.ReLU(inplace=True)


def _layer(tree: Tree, write: Write) -> Rewrite | None:
    call = write.node
    assert isinstance(call, ast.Call)
    patch = without_keyword(tree, call, "inplace")
    if patch is None:
        return None
    name = meaning(tree, call.func).rpartition(".")[2]
    return Rewrite("layer", name, (patch,), _layer_standing(tree, call))


def _layer_standing(tree: Tree, call: ast.Call) -> Standing:
    """Whether anybody could see what the layer wrote into its input: nobody can when another layer of the same
    sequence made it, or when every call of the layer is given a value that nothing else reads."""
    known = Standing(read_later=True)
    parent = tree.parents.get(call)
    if isinstance(parent, ast.Call) and meaning(tree, parent.func).endswith(".Sequential"):
        if parent.args and parent.args[0] is not call:
            return known
    statement = tree.statement(call)
    if isinstance(statement, ast.Assign) and statement.value is call and len(statement.targets) == 1:
        layer = ast.unparse(statement.targets[0])
        scope: ast.AST = tree.owner(statement) or tree.module
        for node in ast.walk(scope):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == layer and node.args:
                used = tree.statement(node)
                base = root(node.args[0])
                if base is None or used is None:
                    continue
                if not isinstance(base, ast.Name):
                    known.reasons.append(f"{ast.unparse(base)} is written by it")
                    continue
                one = standing(tree, base.id, used)
                rebinds = _assigns_only(used, base.id)
                reads_of_it = sum(
                    isinstance(inner, ast.Name) and inner.id == base.id and isinstance(inner.ctx, ast.Load)
                    for inner in ast.walk(used)
                )
                if not one.is_private or (one.read_later and not rebinds) or reads_of_it > 1:
                    known.reasons.append(f"{base.id} is written by it and read elsewhere")
        return known
    known.reasons.append("the layer may be given a value that is read elsewhere")
    return known


def _standing(tree: Tree, target: ast.AST, statement: ast.stmt, written: ast.AST | None = None) -> Standing:
    if isinstance(target, ast.Name):
        return standing(tree, target.id, statement, lambda alias: is_spared(alias, target.id, written))
    return Standing([f"{tree.segment(target)} belongs to an object"], False, True)
