"""One module in several places of a row: `nn.ModuleList([layer] * 6)` is six names for one set of parameters.

What an object holds under a name of its own besides is shared on purpose, and so is what is written out place by place.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.trace import ChildrenChanged, LayerMade
from gradsight.model.values import Instance, Layer

ROWS = {"ModuleList", "Sequential"}


class RepeatedModules:
    """Looks at rows of modules when they are made, and when they get one more."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_layer_made(self, fact: LayerMade) -> None:
        call = fact.node
        if fact.layer.name.rpartition(".")[2] not in ROWS or not isinstance(call, ast.Call) or not call.args:
            return
        children = children_of(fact.layer)
        if len(call.args) > 1:
            self.some_repeated(call, children)
            return
        given = call.args[0].value if isinstance(call.args[0], ast.Starred) else call.args[0]
        if isinstance(given, (ast.List, ast.Tuple)):
            return
        repeated = one_for_all(given)
        twice: list[Any] = []
        if repeated is None:
            if isinstance(given, (ast.ListComp, ast.GeneratorExp, ast.BinOp)):
                return
            twice = [
                one
                for place, one in enumerate(children)
                if any(one is other for other in children[:place]) and self.is_made_here(one)
            ]
        else:
            twice = children[:1]
        for module in twice[:1]:
            self.claim(module, repeated if repeated is not None else call)

    def some_repeated(self, call: ast.Call, children: list[Any]) -> None:
        """`nn.Sequential(*([block] * depth), head)`: the first of the row is the one that is repeated, where it comes first."""
        first = call.args[0]
        repeated = one_for_all(first.value) if isinstance(first, ast.Starred) else None
        if repeated is not None and children:
            self.claim(children[0], repeated)

    def on_children_changed(self, fact: ChildrenChanged) -> None:
        call = fact.node
        if not isinstance(fact.module, Layer) or not isinstance(call, ast.Call) or len(call.args) != 1:
            return
        children = children_of(fact.module)
        is_again = bool(children) and any(one is children[-1] for one in children[:-1])
        if isinstance(call.args[0], ast.Name) and is_again and self.is_made_here(children[-1]):
            self.claim(children[-1], call)

    def is_made_here(self, module: Any) -> bool:
        """Whether this function makes a module, outside of its loops: of a long loop not all rounds are executed."""
        site = module.site
        return isinstance(site, Site) and site.frame is self.path.frame and not is_in_loop(site)

    def claim(self, module: Any, node: ast.AST) -> None:
        if not any(
            tensor.requires_grad is not False for _, tensor in self.path.tensors_of(module, "parameter")
        ):
            return
        site = self.path.site(node)
        made = module.site
        steps = [Step("made", made, "made once, here")] if isinstance(made, Site) else []
        name = node.id if isinstance(node, ast.Name) else ""
        self.claims.add("module-repeated", site, steps, layer=name or named_of(module))


def is_in_loop(site: Site) -> bool:
    """Whether a place lies in a loop of its function, by the text."""
    function = site.frame.function
    return any(
        isinstance(loop, (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)) and site.node in ast.walk(loop)
        for part in ([function.node] if function is not None else site.frame.unit.tree)
        for loop in ast.walk(part)
    )


def one_for_all(given: ast.AST) -> ast.AST | None:
    """The expression that stands for every place of a row: of `[layer] * n` and `[layer for _ in range(n)]`."""
    if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Mult):
        row = next((side for side in (given.left, given.right) if isinstance(side, ast.List)), None)
        if row is None or len(row.elts) != 1:
            return None
        counts = [side for side in (given.left, given.right) if side is not row]
        if isinstance(counts[0], ast.Constant) and counts[0].value in (0, 1):
            return None
        return row.elts[0] if isinstance(row.elts[0], (ast.Name, ast.Call)) else None
    if isinstance(given, (ast.ListComp, ast.GeneratorExp)) and isinstance(given.elt, ast.Name):
        bound = {
            inner.id
            for generator in given.generators
            for inner in ast.walk(generator.target)
            if isinstance(inner, ast.Name)
        }
        return given.elt if given.elt.id not in bound else None
    return None


def children_of(layer: Layer) -> list[Any]:
    registered = layer.module.registered
    return [
        value
        for name, value in layer.attributes.items()
        if registered.get(name) == "module" and isinstance(value, (Layer, Instance))
    ]


def named_of(module: Any) -> str:
    if isinstance(module, Layer):
        return module.name.rpartition(".")[2]
    return str(getattr(getattr(module, "cls", None), "name", "module"))
