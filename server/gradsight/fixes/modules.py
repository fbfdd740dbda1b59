"""Repairs of nn.Module classes (GS6xx)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradsight.fixes.calls import without_keyword
from gradsight.fixes.draft import Draft, FixCase, drafts, short
from gradsight.fixes.expressions import without_call, without_method
from gradsight.fixes.lines import insert_after, insert_before, move_before, remove
from gradsight.fixes.names import meaning, parameters, reach
from gradsight.fixes.tree import FunctionNode, Patch, Tree
from gradsight.model.fix import Safety

CONTAINERS = {
    ("list", "module"): "ModuleList",
    ("tuple", "module"): "ModuleList",
    ("dict", "module"): "ModuleDict",
    ("list", "parameter"): "ParameterList",
    ("tuple", "parameter"): "ParameterList",
    ("dict", "parameter"): "ParameterDict",
}
OFFERED = {
    "ModuleList": frozenset("append extend insert pop".split()),
    "ParameterList": frozenset("append extend".split()),
    "ModuleDict": frozenset("items keys values update pop clear".split()),
    "ParameterDict": frozenset("items keys values update pop clear get copy setdefault popitem".split()),
}


def not_registered(case: FixCase) -> Iterator[Draft]:
    """The container, or the parameter, that the module knows of."""
    value = getattr(case.statement, "value", None)
    if not isinstance(case.statement, (ast.Assign, ast.AnnAssign)) or not isinstance(value, ast.expr):
        return
    container = case.word("container")
    if container == "tensor":
        yield from _parameter(case, value)
        return
    kind = CONTAINERS.get((container, case.word("what")))
    written = reach(case.tree, f"torch.nn.{kind}", case.statement) if kind is not None else None
    if kind is None or written is None or not _keys_fit(value):
        return
    start, end = case.tree.start(value), case.tree.end(value)
    if isinstance(value, (ast.List, ast.Dict, ast.Tuple)) and case.tree.segment(value) in ("[]", "{}", "()"):
        patches: tuple[Patch, ...] = (Patch(start, end, f"{written.text}()"),)
    else:
        patches = (Patch(start, start, f"{written.text}("), Patch(end, end, ")"))
    is_safe = not case.finding.data.get("mixed") and _is_own(case, value) and _is_used_as(case, kind)
    safety: Safety = "safe" if is_safe else "unsafe"
    title = f"make `{case.word('name')}` an `nn.{kind}`"
    yield Draft("register", title, safety, (*written.patches, *patches))


def _keys_fit(value: ast.expr) -> bool:
    """Whether the keys of a dict may name modules: only strings may."""
    if isinstance(value, ast.Dict):
        return all(not isinstance(key, ast.Constant) or isinstance(key.value, str) for key in value.keys)
    return True


def _is_own(case: FixCase, value: ast.expr) -> bool:
    """Whether nobody can change the plain container behind the registered one, which copies its entries."""
    if isinstance(value, ast.Name):
        scope = case.tree.scope(case.statement)
        return scope is not None and not any(
            isinstance(node, ast.Name)
            and node.id == value.id
            and case.tree.start(node) > case.tree.end(value)
            for node in ast.walk(scope)
        )
    return isinstance(value, (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)) or (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in COPYING
    )


COPYING = ("list", "tuple", "dict")
READING = frozenset("len enumerate zip list tuple reversed iter range print bool".split())
"""Functions that take a registered container as well as a plain one."""


def _is_used_as(case: FixCase, kind: str) -> bool:
    """Whether the text uses nothing of the plain container that the registered one lacks, under any name of its owner."""
    name, is_dict = case.word("name"), kind.endswith("Dict")
    if case.tree.owner(case.statement) is None:
        return False
    for node in ast.walk(case.tree.module):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Attribute) and child.attr == name and not _fits(node, child, kind):
                return False
        if is_dict and isinstance(node, ast.Dict) and any(not _is_name(key) for key in node.keys):
            # Its keys become names of attributes.
            if node is getattr(case.statement, "value", None):
                return False
    return not (is_dict and isinstance(getattr(case.statement, "value", None), ast.DictComp))


def _fits(parent: ast.AST, used: ast.Attribute, kind: str) -> bool:
    """Whether one use of the container is one that the registered container knows too."""
    if isinstance(parent, ast.Attribute):
        return parent.attr in OFFERED[kind]
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent.iter is used
    if isinstance(parent, ast.Subscript):
        return not kind.endswith("Dict") or isinstance(parent.ctx, ast.Load) or _is_name(parent.slice)
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Name) and parent.func.id in READING
    if isinstance(parent, ast.Compare):
        return used is not parent.left and all(isinstance(op, (ast.In, ast.NotIn)) for op in parent.ops)
    if isinstance(parent, ast.Assign):
        return isinstance(used.ctx, ast.Store)
    return isinstance(parent, (ast.AnnAssign, ast.Starred, ast.YieldFrom, ast.Return, ast.Delete))


def _is_name(key: ast.expr | None) -> bool:
    """Whether a key of a dict may name a module: a plain word, and none that every module has a use for."""
    value = key.value if isinstance(key, ast.Constant) else None
    return isinstance(value, str) and value.isidentifier() and value not in TAKEN


TAKEN = frozenset(
    "add_module apply bfloat16 buffers children clear compile cpu cuda double eval extra_repr float forward get_buffer half items "
    "keys load_state_dict modules named_modules named_parameters parameters pop register_buffer requires_grad_ state_dict to "
    "train training type update values zero_grad".split()
)


def _parameter(case: FixCase, value: ast.expr) -> Iterator[Draft]:
    tree = case.tree
    written = reach(tree, "torch.nn.Parameter", case.statement)
    if written is None:
        return
    text = tree.segment(value)
    flag = _flagged(tree, value)
    if flag is not None:
        gone = without_keyword(tree, flag, "requires_grad") if flag.keywords else without_method(tree, flag)
        if gone is None:
            return
        text = tree.segment(value, (gone,))
    patch = Patch(tree.start(value), tree.end(value), f"{written.text}({text})")
    name = case.word("name")
    yield Draft("parameter", f"make `{name}` an `nn.Parameter`", "safe", (*written.patches, patch))
    target = getattr(case.statement, "targets", [None])[0]
    if flag is not None and isinstance(target, ast.Attribute) and target.attr == name:
        call = f'{tree.segment(target.value)}.register_buffer("{name}", {text})'
        whole = Patch(tree.start(case.statement), tree.end(case.statement), call)
        yield Draft("buffer", f"make `{name}` a buffer", "unsafe", (whole,))


def _flagged(tree: Tree, value: ast.expr) -> ast.Call | None:
    """The call at the top of an expression that asks for a gradient."""
    if not isinstance(value, ast.Call):
        return None
    if isinstance(value.func, ast.Attribute) and value.func.attr == "requires_grad_":
        return value if not value.args and not value.keywords else None
    has_flag = any(word.arg == "requires_grad" for word in value.keywords)
    return value if has_flag and meaning(tree, value.func).startswith("torch.") else None


def typo(case: FixCase) -> Iterator[Draft]:
    """The attribute that is meant."""
    tree, statement, meant = case.tree, case.statement, case.word("meant")
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Attribute):
        return
    if meant.isidentifier():
        end = tree.end(target)
        patch = Patch(end - len(target.attr), end, meant)
        yield Draft("rename", f"rename `{target.attr}` to `{meant}`", "safe", (patch,))
    elif meant == "requires_grad_()" and isinstance(statement, ast.Assign):
        start = tree.end(target) - len(target.attr)
        text = f"requires_grad_({tree.segment(statement.value)})"
        patch = Patch(start, tree.end(statement), text)
        yield Draft("method", f"replace with `{tree.segment(target.value)}.{text}`", "safe", (patch,))
    elif meant == f"{target.attr}(…)" and isinstance(statement, ast.Assign):
        text = f"({tree.segment(statement.value)})"
        patch = Patch(tree.end(target), tree.end(statement), text)
        yield Draft("call-it", f"call `{target.attr}`", "unsafe", (patch,))
    elif meant.startswith("param_groups") and isinstance(statement, ast.Assign):
        name, value = tree.segment(target.value), tree.segment(statement.value)
        inner = tree.newline + tree.indent(statement) + tree.indent_unit
        text = f'for group in {name}.param_groups:{inner}group["{target.attr}"] = {value}'
        if tree.stands_alone(statement):
            patch = Patch(tree.start(statement), tree.end(statement), text)
            yield Draft(
                "groups", f"set `{target.attr}` in the parameter groups of `{name}`", "unsafe", (patch,)
            )


def super_first(case: FixCase) -> Iterator[Draft]:
    """Initialise the module before anything is assigned to it."""
    tree = case.tree
    function = tree.scope(case.statement)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(function.body) > 1:
        first = function.body[1]
    called = next((one for one in function.body if _is_super_init(one)), None)
    if called is None:
        patch = insert_before(tree, first, "super().__init__()")
        yield from drafts("super-init", "call `super().__init__()` first", "safe", patch)
        return
    if not _uses_arguments_only(function, called):
        return
    patches = move_before(tree, called, first)
    yield from drafts("super-init", f"move `{short(tree.segment(called))}` to the top", "safe", patches)


def _is_super_init(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    base = call.func.value
    return call.func.attr == "__init__" and isinstance(base, ast.Call) and ast.unparse(base.func) == "super"


def _uses_arguments_only(function: FunctionNode, statement: ast.stmt) -> bool:
    """Whether a call needs nothing that the function computes before it."""
    call = getattr(statement, "value", None)
    given = [*call.args, *(word.value for word in call.keywords)] if isinstance(call, ast.Call) else []
    known = parameters(function) - {"self"}
    assigned = {
        node.id
        for earlier in function.body
        for node in ast.walk(earlier)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    names = {node.id for one in given for node in ast.walk(one) if isinstance(node, ast.Name)}
    return not names & assigned and "self" not in names and (names <= known or not names & {"self"})


def made_in_forward(case: FixCase) -> Iterator[Draft]:
    """Make the layer once, in __init__.  Unsafe: its parameters are then drawn at another time."""
    tree, call = case.tree, case.node
    owner = tree.owner(case.statement)
    if not isinstance(call, ast.Call) or owner is None:
        return
    init = next(
        (one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None
    )
    names = {
        node.id
        for one in [*call.args, *(w.value for w in call.keywords)]
        for node in ast.walk(one)
        if isinstance(node, ast.Name)
    }
    if init is None or not names <= {"self"} or "\n" in tree.segment(call):
        return
    taken = {node.attr for node in ast.walk(owner) if isinstance(node, ast.Attribute)}
    statement = case.statement
    layer = meaning(tree, call.func).rpartition(".")[2].lower()
    used: list[Patch] = [Patch(tree.start(call), tree.end(call), f"self.{layer}")]
    if (
        isinstance(statement, ast.Assign)
        and statement.value is call
        and isinstance(statement.targets[0], ast.Name)
    ):
        layer = statement.targets[0].id
        gone = remove(tree, statement)
        if gone is None or len(statement.targets) > 1:
            return
        used = [gone, *_renamed(tree, tree.scope(statement), layer)]
    added = insert_after(tree, init.body[-1], f"self.{layer} = {tree.segment(call)}")
    if not layer or layer in taken or added is None:
        return
    yield Draft("hoist", f"create `self.{layer}` once, in `__init__`", "unsafe", (added, *used))


def _renamed(tree: Tree, scope: ast.AST, name: str) -> Iterator[Patch]:
    """Every read of a local name, from the module instead."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            yield Patch(tree.start(node), tree.end(node), f"self.{name}")


def activation_twice(case: FixCase) -> Iterator[Draft]:
    """Leave the activation to the loss.  Unsafe: whoever else reads the value gets another one."""
    tree, made = case.tree, case.step_node("made")
    if not isinstance(made, ast.Call):
        return
    op = case.word("op").lower()
    name = made.func.attr if isinstance(made.func, ast.Attribute) else getattr(made.func, "id", "")
    if op.rstrip("_") not in name.lower():
        return
    inner = made.args[0] if made.args else None
    is_method = False
    if isinstance(made.func, ast.Attribute) and not meaning(tree, made.func):
        is_method = not isinstance(inner, (ast.Name, ast.Call, ast.Attribute, ast.Subscript))
        inner = made.func.value if is_method else inner
    yield from _activation_passed_by(case, made, inner)
    patch = without_method(tree, made) if is_method else without_call(tree, made)
    yield from drafts("no-activation", f"remove `{case.word('op')}`", "unsafe", patch)


def _activation_passed_by(case: FixCase, made: ast.Call, inner: ast.AST | None) -> Iterator[Draft]:
    """The loss is given what the activation was applied to; the activation stays where others read it."""
    tree, loss = case.tree, case.node
    statement = tree.statement(made)
    if (
        not isinstance(loss, ast.Call)
        or not isinstance(inner, ast.Name)
        or not isinstance(statement, ast.Assign)
    ):
        return
    if statement.value is not made or not isinstance(statement.targets[0], ast.Name):
        return
    name = statement.targets[0].id
    if not loss.args or not isinstance(loss.args[0], ast.Name) or loss.args[0].id != name:
        return
    scope = tree.scope(statement)
    if scope is not tree.scope(case.statement):
        return
    count = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(scope))
    patches = [Patch(tree.start(loss.args[0]), tree.end(loss.args[0]), inner.id)]
    gone = remove(tree, statement) if count == 2 else None
    if gone is not None:
        patches.insert(0, gone)
    title = f"pass `{inner.id}` to `{case.word('loss')}`, without `{case.word('op')}`"
    yield Draft("pass-by", title, "unsafe", tuple(patches))


def forward_called(case: FixCase) -> Iterator[Draft]:
    """`net.forward(x)` becomes `net(x)`."""
    call = case.node
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        gone = without_method(case.tree, call.func)
        if gone is not None:
            yield Draft("call-module", f"call `{short(case.word('target'))}(...)`", "unsafe", (gone,))
