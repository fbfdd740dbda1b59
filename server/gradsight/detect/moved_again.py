"""Writes that a checkpoint does once more in backward: those that are made of the written tensor itself may change nothing then.

self.weight.sub_(self.weight.mean())    # the second time, the mean is zero
self.steps.add_(1)                      # the second time, it is one more
"""

from __future__ import annotations

import ast

from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.sites import Site


def is_made_of_itself(site: Site) -> bool:
    """Whether what a write brings is computed from its target, or may be: the statement is of another form."""
    call = site.node
    if isinstance(call, ast.AugAssign):
        target, given = ast.unparse(call.target), [call.value]
    elif isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        target = ast.unparse(call.func.value)
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
    else:
        return True
    function = site.frame.function
    body = syntax_parts(function.node) if function is not None else []
    bound: dict[str, list[ast.expr]] = {}
    for part in body:
        if isinstance(part, ast.Assign):
            for name in (one.id for one in part.targets if isinstance(one, ast.Name)):
                bound.setdefault(name, []).append(part.value)
    owner, todo, seen = target.removesuffix(".data"), list(given), set()
    while todo:
        for part in syntax_parts(todo.pop()):
            if isinstance(part, (ast.Name, ast.Attribute)) and ast.unparse(part) in (target, owner):
                return True
            if isinstance(part, ast.Name) and part.id not in seen:
                seen.add(part.id)
                todo += bound.get(part.id, [])
    return False
