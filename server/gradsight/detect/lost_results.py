"""Results that are lost: under a loop's own name, under one that the next round binds again, or in a hook.

`for i, x in enumerate(maps): x = self.refine[i](x)` leaves `maps` as they were.  `for layer in self.layers: out = layer(x)` gives
every layer the same input, and what the last one makes of it is all that stays.  A forward hook that binds `output` and returns
nothing changes nothing, and a hook on a view of a parameter is not run by what is computed with the parameter.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.changed_data import loops_around
from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import is_inside, names_read, returns_value, statement_around
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.loop_names import binds, loses_at_round_end
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Node, Tensor, leaves_of
from gradsight.model.trace import Applied, Assigned, Hooked, ModuleHooked, Walked
from gradsight.model.values import Function, Method

KIND = "result-lost"
MOST_RUNS = 400


class RepeatedLayer:
    """A call in a loop, and the layers that it has applied, each by its parameters, in their order."""

    __slots__ = ("layers", "name", "site")

    def __init__(self, site: Site, name: str) -> None:
        self.site = site
        self.name = name
        self.layers: dict[int, set[Tensor]] = {}


class LostResults:
    """Follows what the rounds of a loop compute into the names that they give it."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.repeated: dict[Any, RepeatedLayer | None] = {}
        self.hooked_views: list[tuple[Tensor, Tensor, Site]] = []
        """Views of leaves that were given a hook, with the leaf."""
        self.walked: set[Node] = set()

    # -- under the loop's own name -------------------------------------------------------------------------------------

    concerning = (ast.Call,)

    @staticmethod
    def concerned_by(statement: ast.Assign) -> bool:
        return len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)

    def on_assigned(self, fact: Assigned) -> None:
        statement, frame = fact.statement, self.path.frame
        target = statement.targets[0]
        if not frame.loops or not isinstance(target, ast.Name) or not self.path.grad_mode:
            return
        value = frame.namespace.get(target.id)
        if type(value) is not Tensor or value.node is None or value.needs_grad() is not True:
            return
        if target.id not in names_read(statement.value) or value.serial <= fact.newest:
            return
        loop = next((one for one in reversed(loops_around(statement, frame)) if binds(one, target.id)), None)
        if loop is None or not loses_at_round_end(loop, target.id, statement):
            return
        if not is_read_after(target.id, loop, frame):
            self.claims.add(KIND, self.path.site(statement), [], target=target.id, how="name")

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def on_module_hooked(self, fact: ModuleHooked) -> None:
        """A forward hook that gives its own `output` a new meaning and returns nothing."""
        hook, skipped = fact.hook, 0
        if isinstance(hook, Method):
            hook, skipped = hook.function, 1
        if not isinstance(hook, Function) or isinstance(hook.node, ast.Lambda) or returns_value(hook.node):
            return
        parameters = [one.arg for one in [*hook.node.args.posonlyargs, *hook.node.args.args]][skipped:]
        last = hook.node.body[-1]
        if len(parameters) != 3 or not isinstance(last, ast.Assign) or len(last.targets) != 1:
            return
        target = last.targets[0]
        if isinstance(target, ast.Name) and target.id == parameters[2] in names_read(last.value):
            place = self.path.place_in(hook, last)
            step = Step("call", self.path.site(fact.node), "the hook is registered here")
            self.claims.add(KIND, place, [step], target=target.id, how="hook")

    def on_hooked(self, fact: Hooked) -> None:
        """`weight[:].register_hook(f)`: the hook is the view's, which nothing else is computed with."""
        tensor, syntax = fact.tensor, fact.node
        owner = tensor.root()
        if tensor is owner or not owner.is_leaf or owner.requires_grad is not True:
            return
        receiver = (
            syntax.func.value
            if isinstance(syntax, ast.Call) and isinstance(syntax.func, ast.Attribute)
            else None
        )
        if receiver is not None and tensor.node is not None:
            self.hooked_views.append((tensor, owner, self.path.site(syntax)))

    def conclude_hooks(self, reached: set[Tensor]) -> None:
        for view, owner, site in self.hooked_views:
            if owner in reached and view.node not in self.walked:
                self.claims.add(KIND, site, [], target=owner.label, how="view")

    def on_walked(self, fact: Walked) -> None:
        if self.hooked_views:
            self.walked.update(fact.nodes)

    # -- under a name that each round binds again ----------------------------------------------------------------------

    def on_applied(self, fact: Applied) -> None:
        site = self.path.site(fact.node) if self.path.grad_mode else None
        if site is None or not site.loops:
            return
        weights = {
            one
            for one in fact.arguments
            if type(one) is Tensor and one.is_parameter and one.requires_grad is True
        }
        if not weights or len(self.repeated) > MOST_RUNS:
            return
        run, number = site.loops[-1]
        place = next((one for one in [site, *site.callers()] if is_inside(one.node, run.node)), None)
        if place is None:
            return
        key = (place.key, run)
        if key not in self.repeated:
            name = name_bound_again(place, run.node)
            self.repeated[key] = RepeatedLayer(place, name) if name else None
        found = self.repeated[key]
        if found is not None:
            found.layers.setdefault(number, set()).update(weights)

    def finish(self) -> None:
        path = self.path
        if not path.backwards or path.ended_early or path.truncated or path.gradients_unknown:
            return
        moved = {tensor for one in path.optimizers for tensor in path.ever_held_by(one) if one.stepped}
        reached = {leaf for run in path.backwards for leaf in run.leaves}
        self.conclude_hooks(reached)
        cut = {leaf for run in path.backwards for one in run.cuts for leaf in leaves_of(one.edges)}
        for found in self.repeated.values():
            rounds = [layer for _, layer in sorted(found.layers.items())] if found is not None else []
            *before, last = rounds or [set()]
            if found is None or not before or not last <= reached:
                continue
            lost = set().union(*before) - last
            if lost and lost <= moved and not lost & (reached | cut):
                step = Step(
                    "needed", path.backwards[-1].site, "this backward comes through the last layer only"
                )
                self.claims.add(KIND, found.site, [step], target=found.name, how="round")


def name_bound_again(place: Site, loop: ast.AST) -> str:
    """The name that a call in a loop gives its result, if the loop reads it for nothing but to bind it again."""
    statement = statement_around(place.node, place.frame)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or target.id in names_read(statement.value):
        return ""
    for part in syntax_parts(loop):
        if isinstance(part, ast.stmt) and part is not statement and part is not loop and not is_block(part):
            is_same = isinstance(part, ast.Assign) and any(
                isinstance(one, ast.Name) and one.id == target.id for one in part.targets
            )
            if target.id in names_read(part) and not is_same:
                return ""
        elif is_block(part) and part is not loop and target.id in names_read(head_of(part)):
            return ""
    return target.id


def is_block(node: ast.AST) -> bool:
    return isinstance(node, (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try))


def head_of(node: ast.AST) -> ast.AST:
    """What a block asks before its body is executed."""
    if isinstance(node, (ast.If, ast.While)):
        return node.test
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return node.iter
    return ast.Pass()


def is_read_after(name: str, loop: ast.AST, frame: Frame) -> bool:
    """Whether the text behind a loop, or of a loop around it, reads a name that the loop has bound."""
    body = [frame.function.node] if frame.function is not None else frame.unit.tree
    end = getattr(loop, "end_lineno", 0)
    outer = any(
        isinstance(part, (ast.For, ast.AsyncFor, ast.While)) and part is not loop and is_inside(loop, part)
        for statement in body
        for part in syntax_parts(statement)
    )
    return any(
        isinstance(part, ast.Name)
        and part.id == name
        and isinstance(part.ctx, ast.Load)
        and (part.lineno > end or (outer and not is_inside(part, loop)))
        for statement in body
        for part in syntax_parts(statement)
    ) or (frame.function is None)
