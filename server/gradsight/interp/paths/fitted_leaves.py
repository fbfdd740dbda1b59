"""Unknown values that an optimizer is given one by one, and that the text treats as tensors: `LBFGS([image])`.

torch takes tensors and groups there, and of tensors only leaves that require grad.  A group has no gradient, no data and no flag.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.path_state import PathState
from gradsight.interp.paths.roles import deeds_of, key_of
from gradsight.interp.syntax_parts import assigned
from gradsight.model.tensors import Tensor
from gradsight.model.values import Seq, Unknown, Value

OF_TENSORS = frozenset({"grad", "data", "requires_grad"})
MAKING_LEAVES = frozenset({"requires_grad_", "clone", "detach"})


def with_leaves(path: PathState, given: Value, call: ast.AST, scopes: list[ast.AST]) -> Value:
    """What an optimizer is given, with leaves in the place of unknown values that the text treats as tensors."""
    written = call.args[0] if isinstance(call, ast.Call) and call.args else None
    if not isinstance(written, (ast.List, ast.Tuple)) or not isinstance(given, Seq):
        return given
    if len(written.elts) != len(given.items) or not given.exact:
        return given
    items: list[Value] = [
        leaf_for(path, item, key_of(name), name)
        if type(item) is Unknown and is_open(item) and is_treated_as_tensor(key_of(name), scopes)
        else item
        for item, name in zip(given.items, written.elts)
    ]
    return Seq(given.kind, items, given.exact, given.site)


def is_open(value: Unknown) -> bool:
    return value.tensor is None and value.graph is None and not value.hint


def leaf_for(path: PathState, value: Unknown, key: str, node: ast.AST) -> Tensor:
    made = Tensor(path.site(node), requires_grad=True)
    made.leaf_made, made.label = True, key
    value.tensor = made
    path.leaves.append(made)
    return made


def is_treated_as_tensor(key: str, scopes: list[ast.AST]) -> bool:
    if not key:
        return False
    values: list[Any] = [
        value for scope in scopes for target, value in assigned(scope) if key_of(target) == key
    ]
    made = {
        value.func.attr
        for value in values
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
    }
    done = {name for scope in scopes for name in deeds_of(scope).done_to(key)}
    seen = {name for scope in scopes for name in deeds_of(scope).attributes.get(key, ())}
    return bool((made | done) & MAKING_LEAVES or seen & OF_TENSORS)
