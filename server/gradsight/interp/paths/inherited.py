"""Methods that train, which a class has from a base: what the class itself fills in decides what they do.

`class Mine(Trainer)` with a `compute_loss`: it is `Trainer.fit`, in another file perhaps, that calls it and differentiates.
"""

from __future__ import annotations

import ast

from gradsight.interp.library_places import is_of_library
from gradsight.interp.paths.call_graph import summary_of
from gradsight.interp.paths.roles import called_on_self
from gradsight.model.values import ClassValue, Function


def inherited_training(cls: ClassValue) -> list[tuple[Function, set[ast.AST]]]:
    """The methods of its bases that train and call what a class nearer to `cls` has, each with what they call of that."""
    found: list[tuple[Function, set[ast.AST]]] = []
    nearer: dict[str, Function] = {}
    for one in cls.lineage():
        if not isinstance(one, ClassValue) or is_of_library(one):
            continue
        methods = {name: value for name, value in one.namespace.items() if isinstance(value, Function)}
        for name, method in methods.items():
            node = method.defined().node
            if one is not cls and name not in nearer and summary_of(node).steps:
                called: set[ast.AST] = {
                    nearer[other].defined().node for other in called_on_self(node) & nearer.keys()
                }
                if called:
                    found.append((method, called))
        for name, method in methods.items():
            if not name.startswith("__"):
                nearer.setdefault(name, method)
    return found
