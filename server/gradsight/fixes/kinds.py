"""What the text itself shows to be a tensor: made by torch, or computed from what is."""

from __future__ import annotations

import ast

from gradsight.fixes.aliases import every_binding
from gradsight.fixes.forms import INPLACE
from gradsight.fixes.names import last_name, meaning, method_of
from gradsight.fixes.tree import Tree
from gradsight.ops.traits import having

DEEPEST = 6
MADE = frozenset(
    {"tensor", "as_tensor", "from_numpy"}.union(
        *map(having, ("sized", "sized-by-tuple", "row-of-numbers", "matrix-of-numbers"))
    )
)
COMPUTED = having("one-tensor torch") | having("one-tensor nn.functional") | {"where"}
"""Functions that give one tensor; `where` does with three arguments."""
METHODS = having("one-tensor Tensor") | {"cuda"}


def is_plainly_tensor(tree: Tree, node: ast.AST | None, statement: ast.stmt, depth: int = 0) -> bool:
    """Whether nothing but a tensor can stand here, as far as the text tells; most tensors are not plain."""
    if node is None or depth > DEEPEST:
        return False
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return any(is_plainly_tensor(tree, side, statement, depth + 1) for side in sides)
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        return is_plainly_tensor(tree, node.operand, statement, depth + 1)
    if isinstance(node, ast.Subscript):
        return is_plainly_tensor(tree, node.value, statement, depth + 1)
    if isinstance(node, ast.Call):
        return _is_result(tree, node, statement, depth)
    return every_binding(
        tree,
        node,
        statement,
        lambda one: (
            isinstance(one.place, (ast.Assign, ast.AnnAssign))
            and not isinstance(getattr(one.place, "targets", [None])[0], (ast.Tuple, ast.List))
            and is_plainly_tensor(tree, one.value, one.place, depth + 1)
        ),
    )


def _is_result(tree: Tree, call: ast.Call, statement: ast.stmt, depth: int) -> bool:
    module, _, name = meaning(tree, call.func).rpartition(".")
    if module in ("torch", "torch.nn.functional"):
        return name in MADE or name in COMPUTED
    base = call.func.value if isinstance(call.func, ast.Attribute) else None
    return method_of(call) in METHODS and is_plainly_tensor(tree, base, statement, depth + 1)


CONTAINER_ONLY = frozenset("append extend insert items keys pop popitem setdefault update values".split())
TENSOR_ONLY = frozenset("backward data detach grad grad_fn requires_grad requires_grad_".split())
CONTAINERS = frozenset("Counter OrderedDict defaultdict deque dict list numpy state_dict tolist".split())


def is_container(tree: Tree, node: ast.AST) -> bool:
    """Whether the text uses an expression as only a list or dict can be used, or makes it an array of NumPy."""
    return ast.unparse(node) in _uses(tree)[0]


def is_used_as_tensor(tree: Tree, node: ast.AST) -> bool:
    """Whether the text uses an expression as only a tensor can be used, or makes it one."""
    return ast.unparse(node) in _uses(tree)[1]


def is_key(node: ast.AST) -> bool:
    """Whether an index can only be the key of a dict."""
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    )


def _uses(tree: Tree) -> tuple[set[str], set[str]]:
    """The expressions of a text that are plainly containers, and those that are plainly tensors."""
    known = tree.notes.get("uses")
    if isinstance(known, tuple):
        return known
    containers: set[str] = set()
    tensors: set[str] = set()
    for node in ast.walk(tree.module):
        if isinstance(node, ast.Attribute):
            if node.attr in CONTAINER_ONLY:
                containers.add(ast.unparse(node.value))
            elif node.attr in TENSOR_ONLY or node.attr in INPLACE:
                tensors.add(ast.unparse(node.value))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if _makes_container(tree, node.value):
                    containers.add(ast.unparse(target))
                elif isinstance(node.value, ast.Call) and meaning(tree, node.value.func) in MAKERS:
                    tensors.add(ast.unparse(target))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            name = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
            if node.func.attr == "register_buffer" and isinstance(name, str):
                tensors.add(f"{ast.unparse(node.func.value)}.{name}")
    found = (containers - tensors, tensors)
    tree.notes["uses"] = found
    return found


MAKERS = frozenset({"torch.nn.Parameter", *(f"torch.{name}" for name in MADE)})


def _makes_container(tree: Tree, value: ast.AST) -> bool:
    if isinstance(value, (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Set)):
        return True
    if not isinstance(value, ast.Call):
        return False
    return last_name(value.func) in CONTAINERS or meaning(tree, value.func).startswith("numpy.")
