"""What a text does with an optimizer, of which it is only known by which name it goes."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gradsight.interp.paths.roles import key_of, last_part, only_watches
from gradsight.interp.syntax_parts import parts_of
from gradsight.model.sites import Site

HARMLESS = {"zero_grad", "param_groups", "state_dict", "load_state_dict", "add_param_group"}
"""What may be asked of an optimizer that never steps."""
STEPPING = frozenset({"step", "optimizer", "optim"})
"""What steps it, or is what steps."""
UNSCALING = frozenset({"unscale_"})
"""What may be done with it to gradients that nobody uses."""
BY_NAME = frozenset({"getattr", "attrgetter"})
SHOWING = frozenset({"print", "str", "repr", "type", "isinstance"})
OF_TEXTS = frozenset(dir(str))
"""What is called on words, and on no optimizer."""


@dataclass(frozen=True, slots=True)
class Called:
    """A name, which a local variable has, or an attribute as well."""

    text: str
    is_attribute: bool = True

    def fits(self, node: ast.AST) -> bool:
        """Whether an expression is this name."""
        if isinstance(node, ast.Name):
            return node.id == self.text
        is_own = isinstance(node, ast.Attribute) and self.is_attribute and node.attr == self.text
        return is_own and key_of(node) != "torch.optim"


def called(text: str, site: Site) -> Called:
    """By which name the optimizer goes whose gradients are cleared, or that is made, at a place."""
    target = getattr(getattr(site.node, "func", None), "value", None)
    is_attribute = isinstance(target, ast.Attribute) or any(
        isinstance(part, ast.Attribute) and part.attr == text and isinstance(part.ctx, ast.Store)
        for statement in site.unit.tree
        for part in parts_of(statement, ast.Attribute)
    )
    return Called(text, is_attribute)


def is_other_use(
    node: ast.AST, name: Called, harmless: frozenset[str] = UNSCALING, told: ast.AST | None = None
) -> bool:
    """Whether something below, but for what was `told`, reads the name for more than to clear, save or schedule.

    It may be handed to what is `harmless`, and be bound to the same name elsewhere: `self.optimizer = optimizer`.
    """
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and (pairs := bound_pairs(node)):
        return any(
            not name.fits(target) if name.fits(value) else is_other_use(ast.Expr(value), name, harmless, told)
            for target, value in pairs
        )
    for child in ast.iter_child_nodes(node):
        if child is told:
            continue
        if isinstance(child, ast.Attribute) and name.fits(child.value):
            is_called = isinstance(node, ast.Call) and node.func is child
            if child.attr in HARMLESS or is_of_module(child.attr):
                continue
            if is_called and child.attr in OF_TEXTS:
                # `args.optimizer.lower()` is the word for one.
                continue
            if not is_called and child.attr not in STEPPING:
                # `config.optimizer.name`: what is read and not called steps nothing.
                continue
        given = idle_arguments(child, harmless)
        if any(name.fits(one) for one in given):
            others = [one for one in given if not name.fits(one)]
            if any(is_other_use(other, name, harmless, told) for other in others):
                return True
            continue
        if isinstance(child, ast.Compare) and any(is_word(one) for one in child.comparators):
            continue
        if name.fits(child) and isinstance(getattr(child, "ctx", None), ast.Load):
            return True
        if isinstance(child, ast.Call) and last_part(key_of(child.func)) in BY_NAME:
            if any(isinstance(given, ast.Constant) and given.value == name.text for given in child.args):
                return True
        if is_other_use(child, name, harmless, told):
            return True
    return False


def bound_pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """What is bound to what: `self.model, self.optimizer = model, optimizer` item by item."""
    target, value = node.targets[0], node.value
    if isinstance(value, (ast.Name, ast.Attribute)):
        return [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        is_plain = not any(isinstance(one, ast.Starred) for one in (*target.elts, *value.elts))
        return list(zip(target.elts, value.elts, strict=True)) if is_plain else []
    return []


def idle_arguments(node: ast.AST, harmless: frozenset[str]) -> list[ast.expr]:
    """What a call that steps nothing is given, or a text is put together from."""
    if isinstance(node, ast.JoinedStr):
        return [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and is_word(node.left):
        return list(node.right.elts) if isinstance(node.right, ast.Tuple) else [node.right]
    if not isinstance(node, ast.Call):
        return []
    target, key = node.func, key_of(node.func)
    formats = isinstance(target, ast.Attribute) and target.attr == "format" and is_word(target.value)
    if formats or is_scheduler(node) or last_part(key) in harmless | SHOWING or only_watches(key):
        return arguments_of(node)
    return []


def is_word(node: ast.expr) -> bool:
    """`"adam"`, and what nothing but words are looked for in: `("adam", "sgd")`."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return bool(node.elts) and all(is_word(one) for one in node.elts)
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def arguments_of(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def is_of_module(name: str) -> bool:
    """`self.optim = optim.Adam(...)`: what torch's module of this name has, and no optimizer."""
    return name[:1].isupper() or name == "lr_scheduler"


def is_scheduler(call: ast.Call) -> bool:
    called = str(getattr(call.func, "attr", "") or getattr(call.func, "id", ""))
    return "LR" in called or "cheduler" in called
