"""One module in several places of a row: `nn.ModuleList([layer] * 6)` is six names for one set of parameters.

What an object holds under a name of its own besides is shared on purpose, and so is what is written out place by place.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.trace import ChildrenChanged, LayerMade
from gradsight.model.values import Instance, Layer, Seq

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
            if isinstance(given, (ast.ListComp, ast.GeneratorExp, ast.BinOp)) or self.is_known_in_part(given):
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

    def is_known_in_part(self, given: ast.expr) -> bool:
        """Whether a loop fills the list from its own items, of which not all were looked at: `row += parts[n]`."""
        frame = self.path.frame
        if not isinstance(given, ast.Name) or frame.function is None:
            return False
        row = frame.namespace.get(given.id)
        return isinstance(row, Seq) and row.partial and fills_from_items(frame.function.node, given.id)

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
        row = node.args[0] if isinstance(node, ast.Call) and node.args else node
        if is_chosen_sharing(site, row.id if isinstance(row, ast.Name) else ""):
            return
        made = module.site
        steps = [Step("made", made, "made once, here")] if isinstance(made, Site) else []
        name = node.id if isinstance(node, ast.Name) else ""
        self.claims.add("module-repeated", site, steps, layer=name or named_of(module))


def fills_from_items(function: ast.AST, row: str) -> bool:
    """Whether a loop of a function puts something into a list that depends on the item that the loop is at."""
    for loop in syntax_parts(function):
        if not isinstance(loop, ast.For):
            continue
        items = names_in(loop.target)
        for part in syntax_parts(loop):
            if (
                isinstance(part, ast.AugAssign)
                and names_in(part.target) == {row}
                and items & names_in(part.value)
            ):
                return True
            if (
                isinstance(part, ast.Call)
                and isinstance(part.func, ast.Attribute)
                and names_in(part.func) == {row}
            ):
                if any(items & names_in(argument) for argument in part.args):
                    return True
    return False


def names_in(node: ast.AST) -> set[str]:
    return {part.id for part in (node, *syntax_parts(node)) if isinstance(part, ast.Name)}


def is_chosen_sharing(site: Site, name: str) -> bool:
    """Whether a condition chooses between sharing and copies: `if share: row = [layer] * n` and `else: row = [deepcopy(layer), …]`."""
    function = site.frame.function
    if function is None or not name:
        return False
    for part in syntax_parts(function.node):
        if isinstance(part, ast.If) and part.orelse:
            arms = [[inner for one in arm for inner in syntax_parts(one)] for arm in (part.body, part.orelse)]
            if all(any(isinstance(one, ast.Name) and one.id == name for one in arm) for arm in arms):
                if sum(any(map(is_deep_copy, arm)) for arm in arms) == 1:
                    return True
    return False


def is_deep_copy(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "deepcopy"


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
