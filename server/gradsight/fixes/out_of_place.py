"""Write a tensor operation out of place: the statement gives its name a new tensor instead of changing the old one."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from itertools import takewhile

from gradsight.fixes.aliases import Standing, every_binding, is_read_after, reads, standing
from gradsight.fixes.calls import assigned, restated, small_statement, without_argument, without_keyword
from gradsight.fixes.flags import flag_of
from gradsight.fixes.forms import BY_CLONE, FACTORIES, FUNCTION_CLONES, OPERATORS, OWN_TYPE, WITH_TWIN
from gradsight.fixes.indexes import is_spared
from gradsight.fixes.kinds import is_key
from gradsight.fixes.lines import insert_before, is_compound
from gradsight.fixes.names import arguments, assigns_only, is_local, is_name, is_read, meaning, method_of
from gradsight.fixes.sharing import is_view_attribute, root
from gradsight.fixes.tree import COMPREHENSIONS, Patch, Tree
from gradsight.fixes.writes import WriteStatement, call_write, chain_root, links

SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.MatMult: "@", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
SPACE = re.compile(r"^(?:[ \t\f]|\\(?:\r\n|\r|\n))+")


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A statement rewritten: by a new value or by a clone that is then written; and who else saw the old tensor.

    `keeps_tensor`: the tensor stays the same object and only its memory is another, so that nobody loses sight of it.
    """

    how: str
    name: str
    patches: tuple[Patch, ...]
    standing: Standing
    keeps_tensor: bool = False


def rewrite(tree: Tree, statement: ast.stmt, write: WriteStatement, asked: bool = False) -> Rewrite | None:
    """The statement with one write done out of place, or None when that cannot be written.

    `asked`: on the user's own demand a gradient, too, is given anew; as a repair that would only hide who shares it.
    """
    if write.form == "init":
        return None
    if write.form == "augmented":
        return _augmented(tree, statement, write)
    if write.form == "item":
        return _cloned_first(tree, statement, write.target)
    if write.form == "layer":
        return _layer(tree, write)
    return _call(tree, statement, write, asked)


# y *= 3


def _augmented(tree: Tree, statement: ast.stmt, write: WriteStatement) -> Rewrite | None:
    assert isinstance(statement, ast.AugAssign)
    target = statement.target
    if isinstance(target, ast.Subscript):
        if not is_list(tree, target.value, statement):
            return _cloned_first(tree, statement, target)
        if has_call(target):
            return None
    patch, known = augmented(tree, statement), standing_of(tree, target, statement)
    return Rewrite("new", tree.segment(target), (patch,), known) if patch is not None else None


def augmented(tree: Tree, statement: ast.AugAssign) -> Patch | None:
    """`x *= a` as `x = x * a`."""
    import libcst

    symbol = SYMBOLS[type(statement.op)]
    parsed, model = small_statement(tree.segment(statement)), libcst.parse_expression(f"a {symbol} (b)")
    if not isinstance(parsed, libcst.AugAssign) or not isinstance(model, libcst.BinaryOperation):
        return None
    value = parsed.value
    if not value.lpar and needs_parentheses(tree, statement.value, symbol):
        value = value.with_changes(lpar=model.right.lpar, rpar=model.right.rpar)
    between = tree.text[tree.end(statement.target) : tree.start(statement.value)].partition(f"{symbol}=")
    before, after = (libcst.SimpleWhitespace("".join(SPACE.findall(part)[:1])) for part in between[::2])
    sign = model.operator.with_changes(whitespace_after=after)
    result = model.with_changes(left=parsed.target, operator=sign, right=value)
    return restated(tree, statement, libcst.Assign([libcst.AssignTarget(parsed.target, before)], result))


def needs_parentheses(tree: Tree, value: ast.expr, symbol: str) -> bool:
    """Whether an expression, as it is written, means something else on the right side of an operator."""
    try:
        whole = ast.parse(f"(_ {symbol} {tree.segment(value)}\n)", mode="eval").body
    except SyntaxError:
        return True
    return not isinstance(whole, ast.BinOp) or ast.dump(whole.right) != ast.dump(value)


# y[0] = 1, x[0].mul_(2), k.diagonal().add_(1)


def _cloned_first(tree: Tree, statement: ast.stmt, target: ast.AST | None) -> Rewrite | None:
    """Clone what is written through an item or a view, just before the write."""
    base = written_base(tree, target, statement)
    if base is None or has_call(base):
        return None
    if isinstance(base, ast.Name) and not is_local(tree, base.id, statement):
        return None
    name = tree.segment(base)
    patch = insert_before(tree, statement, f"{name} = {name}.clone()")
    if patch is None:
        return None
    return Rewrite("clone", name, (patch,), standing_of(tree, base, statement, target))


def written_base(tree: Tree, target: ast.AST | None, statement: ast.stmt) -> ast.AST | None:
    """The whole tensor behind an item or a view; an entry of a list is whole in itself."""
    inner = target
    while isinstance(inner, ast.Subscript):
        if is_list(tree, inner.value, statement) or is_key(inner.slice):
            return inner
        inner = inner.value
    return root(target)


def is_list(tree: Tree, node: ast.AST, place: ast.stmt) -> bool:
    """Whether an expression is plainly a list or dict of the text, whose entries are things of their own."""
    containers = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Tuple)
    return every_binding(
        tree,
        node,
        place,
        lambda one: (
            isinstance(one.value, containers)
            or (isinstance(one.value, ast.BinOp) and isinstance(one.value.left, ast.List))
            or (isinstance(one.value, ast.Call) and is_name(one.value.func, "list", "dict"))
        ),
    )


def has_call(node: ast.AST) -> bool:
    return any(isinstance(one, (ast.Call, ast.Await)) for one in ast.walk(node))


# x.mul_(w), torch.relu_(x), F.relu(x, inplace=True), torch.mul(x, w, out=x)


def _call(tree: Tree, statement: ast.stmt, write: WriteStatement, asked: bool) -> Rewrite | None:
    call = write.node
    assert isinstance(call, ast.Call)
    bottom = chain_root(call) if write.form == "method" else write.target
    if isinstance(bottom, (ast.Tuple, ast.List)):
        return _several_outs(tree, statement, write, bottom)
    if not isinstance(bottom, (ast.Name, ast.Attribute)) or is_view_attribute(bottom):
        if isinstance(bottom, ast.Attribute) and bottom.attr == "data":
            return None
        base = root(bottom)
        if base is None:
            return _of_temporary(tree, write)
        return _cloned_first(tree, statement, bottom)
    if isinstance(bottom, ast.Attribute) and bottom.attr == "grad" and not asked:
        return None
    name = tree.segment(bottom)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Tuple):
        return _tuple_of_calls(tree, statement)
    if isinstance(bottom, ast.Name) and not is_local(tree, bottom.id, statement):
        return None
    whole = getattr(statement, "value", None) is call
    changed = out_of_place(tree, write, name, operator=whole)
    if changed is None:
        return None
    known = standing_of(tree, bottom, statement)
    if write.form == "out" and meaning(tree, call.func).rpartition(".")[2] in OWN_TYPE:
        known.reasons.append(f"{name} may have another type than the result")
    if isinstance(statement, ast.Expr) and whole:
        patches = assigned(tree, statement, name, changed)
        return Rewrite("new", name, patches, known) if patches is not None else None
    return _in_expression(tree, statement, write, bottom, changed, known)


def _several_outs(
    tree: Tree, statement: ast.stmt, write: WriteStatement, targets: ast.Tuple | ast.List
) -> Rewrite | None:
    """`torch.max(x, 0, out=(a, b))` becomes `a, b = torch.max(x, 0)`."""
    names = [one.id for one in targets.elts if isinstance(one, ast.Name)]
    if not isinstance(statement, ast.Expr) or statement.value is not write.node:
        return None
    if len(names) < len(targets.elts) or len(set(names)) < len(names):
        return None
    changed = out_of_place(tree, write, "", operator=False)
    if changed is None or not all(is_local(tree, name, statement) for name in names):
        return None
    merged = Standing(read_later=True)
    for name in names:
        _merge(merged, standing(tree, name, statement))
    patches = assigned(tree, statement, ", ".join(names), changed)
    return Rewrite("new", " and ".join(names), patches, merged) if patches is not None else None


def _merge(merged: Standing, one: Standing) -> None:
    merged.reasons.extend(reason for reason in one.reasons if reason not in merged.reasons)
    merged.argument = merged.argument or one.argument
    merged.read_later = merged.read_later and one.read_later


def _in_expression(
    tree: Tree,
    statement: ast.stmt,
    write: WriteStatement,
    target: ast.AST,
    changed: tuple[Patch, ...],
    known: Standing,
) -> Rewrite | None:
    """A write whose result is used: the written name gets the new value too where somebody still reads it."""
    name = tree.segment(target)
    if is_in_comprehension(tree, write.node, statement):
        known.reasons.append(f"{name} belongs to the comprehension")
        return Rewrite("new", name, changed, known)
    if assigns_only(statement, name):
        return Rewrite("new", name, changed, known)
    is_last = isinstance(statement, ast.Return) and isinstance(target, ast.Name)
    read = isinstance(target, ast.Attribute) or is_read_after(tree, name, statement, tree.scope(statement))
    others = sum(tree.segment(node) == name for node in ast.walk(statement) if type(node) is type(target)) - 1
    if (is_last or not read) and others == 0:
        return Rewrite("new", name, changed, known)
    if is_compound(statement) or others:
        return None
    before = insert_before(tree, statement, f"{name} = {tree.segment(write.node, changed)}")
    if before is None or "\n" in tree.segment(write.node):
        return None
    return Rewrite("new", name, (before, tree.instead(write.node, name)), known)


def is_in_comprehension(tree: Tree, node: ast.AST, statement: ast.stmt) -> bool:
    inside = takewhile(lambda parent: parent is not statement, tree.ancestors(node))
    return any(isinstance(parent, COMPREHENSIONS) for parent in inside)


def _tuple_of_calls(tree: Tree, statement: ast.Expr) -> Rewrite | None:
    """`a.mul_(2), b.mul_(3)` becomes `a, b = a * 2, b * 3`."""
    assert isinstance(statement.value, ast.Tuple)
    patches: list[Patch] = []
    names: list[str] = []
    given: list[ast.expr] = []
    merged = Standing(read_later=True)
    for element in statement.value.elts:
        write = call_write(tree, element) if isinstance(element, ast.Call) else None
        if not isinstance(element, ast.Call) or write is None or write.form != "method":
            return None
        target = chain_root(element)
        if not isinstance(target, ast.Name) or target.id in names or not is_local(tree, target.id, statement):
            return None
        changed = out_of_place(tree, write, target.id, operator=True)
        if changed is None:
            return None
        names.append(target.id)
        patches.extend(changed)
        given += arguments(element)
        _merge(merged, standing(tree, target.id, statement))
    if any(reads(one, name) for name in names for one in given):
        return None
    whole = assigned(tree, statement, ", ".join(names), tuple(patches))
    return Rewrite("new", " and ".join(names), whole, merged) if whole is not None else None


def out_of_place(tree: Tree, write: WriteStatement, name: str, operator: bool) -> tuple[Patch, ...] | None:
    """The patches that turn an in-place call into one that returns a new tensor."""
    call = write.node
    assert isinstance(call, ast.Call)
    if write.form == "flag":
        flag = flag_of(tree, call)
        patch = without_argument(tree, call, flag) if flag is not None else None
        return (patch,) if patch is not None else None
    if write.form == "out":
        return _without_out(tree, call, name)
    if write.form == "function":
        end, method = tree.end(call.func), meaning(tree, call.func).rpartition(".")[2]
        if method in (BY_CLONE | FUNCTION_CLONES) - WITH_TWIN and write.target is not None:
            place = tree.end(write.target)
            return (Patch(place, place, ".clone()"),)
        return (Patch(end - 1, end, ""),)
    chain = list(links(call))
    root_name = chain_root(call)
    if isinstance(root_name, ast.Name) and any(
        reads(given, root_name.id) for link in chain[:-1] for given in arguments(link)
    ):
        # What a later link of the chain is given has already been changed by an earlier one.
        return None
    methods = [method_of(link) for link in chain]
    if len(chain) == 1:
        special = _single(tree, call, name, operator)
        if special is not None:
            return special
    if all(method in WITH_TWIN for method in methods):
        return tuple(Patch(tree.end(link.func) - 1, tree.end(link.func), "") for link in chain)
    if any(method in BY_CLONE for method in methods):
        place = tree.end(chain_root(call))
        return (Patch(place, place, ".clone()"),)
    return None


def _without_out(tree: Tree, call: ast.Call, name: str) -> tuple[Patch, ...] | None:
    """A call without `out=`; what took its type and device from there is told them."""
    out = next(word for word in call.keywords if word.arg == "out")
    given = {word.arg for word in call.keywords}
    missing = [word for word in ("dtype", "device") if word not in given]
    if meaning(tree, call.func).rpartition(".")[2] in FACTORIES and missing:
        told = ", ".join(f"{word}={name}.{word}" for word in missing)
        return (Patch(tree.start(out), tree.end(out), told),)
    patch = without_keyword(tree, call, "out")
    return (patch,) if patch is not None else None


def out_of_place_value(tree: Tree, write: WriteStatement) -> str | None:
    """The value of an in-place call, as an expression that changes nothing."""
    call = write.node
    target = chain_root(call) if write.form == "method" else write.target
    if not isinstance(call, ast.Call) or not isinstance(target, ast.Name):
        return None
    changed = out_of_place(tree, write, target.id, operator=True)
    return tree.segment(call, changed) if changed is not None else None


def _single(tree: Tree, call: ast.Call, name: str, operator: bool) -> tuple[Patch, ...] | None:
    """The shorter way to write one method: an operator."""
    text, sign = tree.segment(call), OPERATORS.get(method_of(call), "")
    plain = len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred)
    if not sign or not plain or not operator or any(mark in text for mark in "\n\r#"):
        return None
    value = tree.segment(call.args[0])
    if needs_parentheses(tree, call.args[0], sign):
        value = f"({value})"
    return (tree.instead(call, f"{name} {sign} {value}"),)


def _of_temporary(tree: Tree, write: WriteStatement) -> Rewrite | None:
    """A write to a value that no name holds: only the operation itself changes."""
    if write.target is None or write.form == "out":
        return None
    changed = out_of_place(tree, write, "", operator=False)
    if changed is None or any(".clone()" in patch.text for patch in changed):
        return None
    return Rewrite("new", "the value", changed, Standing(read_later=True))


# nn.ReLU(inplace=True)


def _layer(tree: Tree, write: WriteStatement) -> Rewrite | None:
    call = write.node
    assert isinstance(call, ast.Call)
    flag = flag_of(tree, call)
    patch = without_argument(tree, call, flag) if flag is not None else None
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
    if not isinstance(statement, ast.Assign) or statement.value is not call or len(statement.targets) != 1:
        known.reasons.append("the layer may be given a value that is read elsewhere")
        return known
    layer = ast.unparse(statement.targets[0])
    for node in ast.walk(tree.owner(statement) or tree.module):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != layer or not node.args:
            continue
        used, base = tree.statement(node), root(node.args[0])
        if base is None or used is None:
            continue
        if not isinstance(base, ast.Name):
            known.reasons.append(f"{ast.unparse(base)} is written by it")
            continue
        one = standing(tree, base.id, used)
        is_rebound = not one.read_later or assigns_only(used, base.id)
        if not one.is_private or not is_rebound or sum(is_read(n, base.id) for n in ast.walk(used)) > 1:
            known.reasons.append(f"{base.id} is written by it and read elsewhere")
    return known


def standing_of(tree: Tree, target: ast.AST, statement: ast.stmt, written: ast.AST | None = None) -> Standing:
    if isinstance(target, ast.Name):
        return standing(tree, target.id, statement, lambda alias: is_spared(alias, target.id, written))
    return Standing([f"{tree.segment(target)} belongs to an object"], False, True)
