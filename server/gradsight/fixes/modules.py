"""Repairs of nn.Module classes (GS6xx)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradsight.fixes.calls import stated, without_keyword
from gradsight.fixes.draft import Draft, FixCase, drafts, short, shown
from gradsight.fixes.expressions import ATOMS, without_call, without_method
from gradsight.fixes.lines import insert_after, insert_before, move_before, remove
from gradsight.fixes.names import (
    arguments,
    attributes_in,
    is_docstring,
    is_name,
    is_read,
    last_name,
    meaning,
    method_in,
    method_of,
    names_in,
    reach,
    receiver,
    stored_in,
)
from gradsight.fixes.tree import FUNCTIONS, FunctionNode, Patch, Tree
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
    patches: tuple[Patch, ...] = case.tree.between(f"{written.text}(", value, ")")
    if case.tree.segment(value) in ("[]", "{}", "()"):
        patches = (case.tree.instead(value, f"{written.text}()"),)
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
        return not any(
            is_name(node, value.id) and case.tree.start(node) > case.tree.end(value)
            for node in ast.walk(case.tree.scope(case.statement))
        )
    return isinstance(value, (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)) or (
        isinstance(value, ast.Call) and is_name(value.func, "list", "tuple", "dict")
    )


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
    patch = tree.instead(value, f"{written.text}({text})")
    name = case.word("name")
    yield Draft("parameter", f"make `{name}` an `nn.Parameter`", "safe", (*written.patches, patch))
    target = getattr(case.statement, "targets", [None])[0]
    if flag is not None and isinstance(target, ast.Attribute) and target.attr == name:
        call = f'{tree.segment(target.value)}.register_buffer("{name}", {text})'
        yield Draft("buffer", f"make `{name}` a buffer", "unsafe", (tree.instead(case.statement, call),))


def _flagged(tree: Tree, value: ast.expr) -> ast.Call | None:
    """The call at the top of an expression that asks for a gradient."""
    if not isinstance(value, ast.Call):
        return None
    if method_of(value) == "requires_grad_":
        return value if not arguments(value) else None
    has_flag = any(word.arg == "requires_grad" for word in value.keywords)
    return value if has_flag and meaning(tree, value.func).startswith("torch.") else None


def parameter_refused(case: FixCase) -> Iterator[Draft]:
    """An `nn.Parameter` around a tensor without a graph."""
    value = getattr(case.statement, "value", None)
    written = reach(case.tree, "torch.nn.Parameter", case.statement)
    if not isinstance(case.statement, ast.Assign) or not isinstance(value, ast.expr) or written is None:
        return
    if not case.word("graph"):
        patches = (*written.patches, *case.tree.between(f"{written.text}(", value, ")"))
        yield Draft("parameter", "assign an `nn.Parameter`", "unsafe", patches)


def typo(case: FixCase) -> Iterator[Draft]:
    """The attribute that is meant."""
    tree, statement, meant = case.tree, case.statement, case.word("meant")
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Attribute):
        return
    name, value = tree.segment(target.value), tree.segment(statement.value)
    if meant.isidentifier():
        end = tree.end(target)
        patch = Patch(end - len(target.attr), end, meant)
        yield Draft("rename", f"rename `{target.attr}` to `{meant}`", "safe", (patch,))
    elif meant == "requires_grad_()":
        text = f"{name}.requires_grad_({value})"
        yield from drafts("method", f"replace with `{text}`", "safe", stated(tree, statement, text))
    elif meant == f"{target.attr}(…)":
        called = stated(tree, statement, f"{name}.{target.attr}({value})")
        yield from drafts("call-it", f"call `{target.attr}`", "unsafe", called)
    elif meant.startswith("param_groups") and tree.stands_alone(statement):
        inner = tree.newline + tree.indent(statement) + tree.indent_unit
        text = f'for group in {name}.param_groups:{inner}group["{target.attr}"] = {value}'
        title = f"set `{target.attr}` in the parameter groups of `{name}`"
        yield Draft("groups", title, "unsafe", (tree.instead(statement, text),))


def super_first(case: FixCase) -> Iterator[Draft]:
    """Initialise the module before anything is assigned to it."""
    tree = case.tree
    function = tree.scope(case.statement)
    if not isinstance(function, FUNCTIONS):
        return
    first = function.body[0]
    if is_docstring(first) and len(function.body) > 1:
        first = function.body[1]
    called = next((one for one in function.body if _is_super_init(one)), None)
    if called is None:
        patch = insert_before(tree, first, "super().__init__()")
        yield from drafts("super-init", "call `super().__init__()` first", "safe", patch)
        return
    if not _uses_arguments_only(function, called):
        return
    patches = move_before(tree, called, first)
    yield from drafts("super-init", f"move `{shown(tree, called)}` to the top", "safe", patches)


def _is_super_init(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    base = receiver(call, "__init__")
    return isinstance(base, ast.Call) and is_name(base.func, "super")


def _uses_arguments_only(function: FunctionNode, statement: ast.stmt) -> bool:
    """Whether a call needs nothing that the function computes before it."""
    call = getattr(statement, "value", None)
    names = names_in(*arguments(call)) if isinstance(call, ast.Call) else set()
    return "self" not in names and names.isdisjoint(stored_in(*function.body))


def made_in_forward(case: FixCase) -> Iterator[Draft]:
    """Make the layer once, in __init__.  Unsafe: its parameters are then drawn at another time."""
    tree, call = case.tree, case.node
    owner = tree.owner(case.statement)
    if not isinstance(call, ast.Call) or owner is None:
        return
    init = method_in(owner, "__init__")
    if init is None or not names_in(*arguments(call)) <= {"self"} or "\n" in tree.segment(call):
        return
    statement = case.statement
    layer = meaning(tree, call.func).rpartition(".")[2].lower()
    used = [tree.instead(call, f"self.{layer}")]
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
    if isinstance(statement, ast.Assign) and isinstance(target, ast.Name):
        layer, gone = target.id, remove(tree, statement)
        if gone is None or len(statement.targets) > 1:
            return
        # Every read of the local name is one of the module's attribute.
        reads = (node for node in ast.walk(tree.scope(statement)) if is_read(node, layer))
        used = [gone, *(tree.instead(node, f"self.{layer}") for node in reads)]
    added = insert_after(tree, init.body[-1], f"self.{layer} = {tree.segment(call)}")
    if not layer or layer in attributes_in(owner) or added is None:
        return
    yield Draft("hoist", f"create `self.{layer}` once, in `__init__`", "unsafe", (added, *used))


def activation_twice(case: FixCase) -> Iterator[Draft]:
    """Leave the activation to the loss.  Unsafe: whoever else reads the value gets another one."""
    tree, made = case.tree, case.step_node("made")
    if not isinstance(made, ast.Call):
        return
    if case.word("op").lower().rstrip("_") not in last_name(made.func).lower():
        return
    inner = made.args[0] if made.args else None
    is_method = False
    if isinstance(made.func, ast.Attribute) and not meaning(tree, made.func):
        is_method = not isinstance(inner, ATOMS)
        inner = made.func.value if is_method else inner
    yield from _activation_passed_by(case, made, inner)
    patch = without_method(tree, made) if is_method else without_call(tree, made)
    yield from drafts("no-activation", f"remove `{case.word('op')}`", "unsafe", patch)


def _activation_passed_by(case: FixCase, made: ast.Call, inner: ast.AST | None) -> Iterator[Draft]:
    """The loss is given what the activation was applied to; the activation stays where others read it."""
    tree, loss = case.tree, case.node
    statement = tree.statement(made)
    if not isinstance(loss, ast.Call) or not loss.args or not isinstance(inner, ast.Name):
        return
    if not isinstance(statement, ast.Assign) or statement.value is not made:
        return
    target, scope = statement.targets[0], tree.scope(statement)
    if not isinstance(target, ast.Name) or not is_name(loss.args[0], target.id):
        return
    if scope is not tree.scope(case.statement):
        return
    count = sum(is_name(node, target.id) for node in ast.walk(scope))
    gone = remove(tree, statement) if count == 2 else None
    patches = [*([gone] if gone is not None else []), tree.instead(loss.args[0], inner.id)]
    title = f"pass `{inner.id}` to `{case.word('loss')}`, without `{case.word('op')}`"
    yield Draft("pass-by", title, "unsafe", tuple(patches))


def forward_called(case: FixCase) -> Iterator[Draft]:
    """`net.forward(x)` becomes `net(x)`."""
    call = case.node
    gone = without_method(case.tree, call.func) if isinstance(call, ast.Call) and method_of(call) else None
    yield from drafts("call-module", f"call `{short(case.word('target'))}(...)`", "unsafe", gone)
