"""Models that were to be copied and were given a second name: `best = model`, `target = policy`, `copy.copy(model)`.

*Alias*: a name or attribute that was given a module which has another one already.  That a copy was meant is told by what
the program does: it loads the one from the other, it calls `copy.copy`, or it gives a name that says so (`best`, `target`)
and uses that after a step has changed the model under its first name.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.naming import value_of_target
from gradsight.detect.path import Path
from gradsight.detect.untrained_parameters import leaf_behind
from gradsight.interp.paths.roles import key_of
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.name_hints import suggests
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Assigned, NameRead, StateLoaded, Stepped
from gradsight.model.values import Instance, Layer, Unknown, tensors_in

KIND = "model-not-copied"


class ModuleAlias:
    """One more name for a module."""

    __slots__ = ("frame", "how", "module", "name", "origin", "site", "stepped", "target")

    def __init__(
        self, module: Any, target: ast.expr, origin: ast.expr, how: str, frame: Frame, site: Site
    ) -> None:
        self.module = module
        self.target = target
        self.origin = origin
        self.how = how
        self.frame = frame
        self.site = site
        self.name = ast.unparse(target)
        self.stepped: Site | None = None


class ModuleAliases:
    """Notes second names of modules, and speaks when one is used as if it were a copy."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.aliases: list[ModuleAlias] = []
        self.loaded_from_itself: list[tuple[Any, Site]] = []
        """Modules that were given their own state, and where."""

    concerning = (ast.Name, ast.Attribute, ast.Call, ast.Tuple)

    @staticmethod
    def concerned_by(statement: ast.Assign) -> bool:
        origin = statement.value
        if isinstance(origin, (ast.Name, ast.Attribute)):
            # `self.size = config.size` is no second name.
            return any(last_word(target) != last_word(origin) for target in statement.targets)
        return isinstance(origin, ast.Call) or isinstance(statement.targets[0], ast.Tuple)

    def on_assigned(self, fact: Assigned) -> None:
        origin, (first, *_) = fact.statement.value, fact.statement.targets
        how = "name"
        if isinstance(origin, ast.Tuple) and isinstance(first, ast.Tuple):
            # `best, best_model = loss, model`
            if len(origin.elts) == len(first.elts) and len(self.aliases) <= MOST_ALIASES:
                for target, value in zip(first.elts, origin.elts):
                    if isinstance(target, (ast.Name, ast.Attribute)) and isinstance(
                        value, (ast.Name, ast.Attribute)
                    ):
                        self.note(target, value, how, fact.statement)
                    elif isinstance(value, ast.Call) and not is_shallow_copy(value):
                        self.note_copy([target])
            return
        if isinstance(origin, ast.Call):
            if not is_shallow_copy(origin):
                self.note_copy(fact.statement.targets)
                return
            origin, how = origin.args[0], "copy"
        if not isinstance(origin, (ast.Name, ast.Attribute)) or len(self.aliases) > MOST_ALIASES:
            return
        if isinstance(origin, ast.Attribute) and self.aliases:
            self.fetched(origin, fact.statement)
        for target in fact.statement.targets:
            if isinstance(target, (ast.Name, ast.Attribute)):
                self.note(target, origin, how, fact.statement)

    def fetched(self, origin: ast.Attribute, node: ast.AST) -> None:
        """`best = stopper.best_model`, wherever that is."""
        module = value_of_target(self.path, origin)
        for alias in self.aliases:
            if alias.module is module and is_attribute_read(origin, last_word(alias.target)):
                self.used(alias, self.path.site(node))

    def note_copy(self, targets: list[ast.expr]) -> None:
        """What a name was given before it gets a copy was a beginning only."""
        names = {ast.unparse(target) for target in targets} if self.aliases else set()
        for alias in self.aliases:
            if alias.name in names and alias.frame is self.path.frame:
                self.claims.granted.add((KIND, alias.site.key))

    def note(self, target: ast.expr, origin: ast.expr, how: str, node: ast.AST) -> None:
        module = value_of_target(self.path, target)
        if type(module) is Unknown:
            # What it is, the program may show later: it is a module if it is trained.
            if module.hint or module.tensor is not None or not suggests("copy", last_word(target)):
                return
        elif not isinstance(module, (Instance, Layer)) or module.module is None:
            return
        if value_of_target(self.path, origin) is not module or last_word(target) == last_word(origin):
            return
        frame = self.path.frame
        alias = ModuleAlias(module, target, origin, how, frame, self.path.site(node))
        self.aliases.append(alias)
        if isinstance(target, ast.Name):
            frame.watched = {**(frame.watched or {}), target.id: alias}

    def on_state_loaded(self, fact: StateLoaded) -> None:
        """`target.load_state_dict(policy.state_dict())`, where both are one; not where a module does it to itself."""
        if self.path.frame.receiver is fact.module:
            return
        loaded = fact.site.node if fact.site is not None else None
        if fact.site is not None and isinstance(loaded, ast.Call) and loads_from_itself(loaded):
            self.loaded_from_itself.append((fact.module, fact.site))
            return
        for alias in self.aliases:
            if self.path.module_behind(alias.module) is fact.module:
                own = {tensor for _, tensor in self.path.tensors_of(fact.module, "parameter")}
                sources = {leaf_behind(tensor) for tensor in tensors_in(fact.state)} - {None}
                if sources and sources <= own and self.is_still_one(alias):
                    self.claim(alias, Step("written", self.path.site(), "this loads the model from itself"))

    def conclude_own_states(self) -> None:
        """`target.load_state_dict(target.state_dict())`, where optimizers train others: the state of one of these was meant."""
        held = {
            tensor for one in self.path.optimizers if one.stepped for tensor in self.path.ever_held_by(one)
        }
        for module, site in self.loaded_from_itself:
            own = {tensor for _, tensor in self.path.tensors_of(module, "parameter")}
            if held and own and not own & held and not self.path.ended_early:
                call = site.node
                name = (
                    ast.unparse(call.func.value)
                    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
                    else ""
                )
                self.claims.add(
                    KIND, site, self.path.call_steps(site), target=name, origin=name, how="itself"
                )

    def on_stepped(self, fact: Stepped) -> None:
        moved: set[Tensor] | None = None
        for alias in self.aliases:
            if alias.stepped is None:
                moved = set(self.path.parameters_of(fact.optimizer)) if moved is None else moved
                module = self.path.module_behind(alias.module)
                if isinstance(module, (Instance, Layer)) and any(
                    tensor in moved for _, tensor in self.path.tensors_of(module, "parameter")
                ):
                    alias.stepped = fact.site

    def on_name_read(self, fact: NameRead) -> None:
        watched = self.path.frame.watched
        alias = watched.get(fact.name) if watched is not None else None
        if isinstance(alias, ModuleAlias):
            self.used(alias, self.path.site(fact.node))

    def used(self, alias: ModuleAlias, site: Site | None) -> None:
        if alias.stepped is None or not (alias.how == "copy" or suggests("copy", last_word(alias.target))):
            return
        # `self.encoder_target = critic_target.encoder`: what it stands for is a part of a copy.
        words = (
            one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "")
            for one in ast.walk(alias.origin)
        )
        if any(suggests("copy", word) for word in words) or not self.is_still_one(alias):
            return
        steps = [Step("written", alias.stepped, "this step changes both")]
        if site is not None:
            steps.append(Step("read", site, f"`{alias.name}` is used here"))
        self.claim(alias, *steps)

    def finish(self) -> None:
        """An attribute is used if the text reads it anywhere but where it is set."""
        self.conclude_own_states()
        for alias in self.aliases:
            if isinstance(alias.target, ast.Attribute) and alias.stepped is not None:
                place = read_of(alias.target.attr, alias.site)
                if place is not None:
                    self.used(alias, Site(place, alias.site.frame))
                elif any(reads(alias.target.attr, statement) for statement in self.path.executed):
                    # `best = stopper.best_model`, far from the class that keeps it.
                    self.used(alias, None)

    def is_still_one(self, alias: ModuleAlias) -> bool:
        """Whether both names stand for the module still: one that was wrapped or made again has gone its own way."""
        for expression in (alias.target, alias.origin):
            if (
                isinstance(expression, ast.Name)
                and alias.frame.namespace.get(expression.id) is not alias.module
            ):
                if expression.id in alias.frame.namespace:
                    return False
            elif isinstance(expression, ast.Attribute) and isinstance(expression.value, ast.Name):
                owner = alias.frame.namespace.get(expression.value.id)
                if isinstance(owner, Instance) and owner.attributes.get(expression.attr) is not alias.module:
                    return False
        return True

    def claim(self, alias: ModuleAlias, *steps: Step) -> None:
        if alias.how == "name" and is_made_otherwise(alias):
            return
        self.claims.add(
            KIND,
            alias.site,
            [*steps, *self.path.call_steps(alias.site)],
            how=alias.how,
            target=alias.name,
            origin=ast.unparse(alias.origin),
        )


MOST_ALIASES = 64


def is_shallow_copy(call: ast.Call) -> bool:
    """`copy.copy(model)`, or `copy(model)` after `from copy import copy`."""
    is_called_copy = last_word(call.func) == "copy" and key_of(call.func) in ("copy.copy", "copy")
    return is_called_copy and len(call.args) == 1 and not call.keywords


def last_word(expression: ast.expr) -> str:
    return expression.attr if isinstance(expression, ast.Attribute) else getattr(expression, "id", "")


def is_made_otherwise(alias: ModuleAlias) -> bool:
    """Whether the other arm of a condition gives the same name what a call makes: no copy is wanted in this arm."""
    for node in (inner for statement in alias.site.unit.tree for inner in syntax_parts(statement)):
        if isinstance(node, ast.If) and node.orelse:
            for arm, other in ((node.body, node.orelse), (node.orelse, node.body)):
                if alias.site.node in arm and any(
                    isinstance(statement, ast.Assign)
                    and isinstance(statement.value, ast.Call)
                    and alias.name in map(ast.unparse, statement.targets)
                    for statement in other
                ):
                    return True
    return False


def read_of(attribute: str, site: Site) -> ast.AST | None:
    """Where the text around an assignment reads an attribute."""
    for node in (inner for statement in site.unit.tree for inner in syntax_parts(statement)):
        if is_attribute_read(node, attribute):
            return node
    return None


def reads(attribute: str, statement: ast.AST) -> bool:
    return any(is_attribute_read(node, attribute) for node in syntax_parts(statement))


def is_attribute_read(node: ast.AST, attribute: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Load)


def loads_from_itself(call: ast.Call) -> bool:
    """`target.load_state_dict(target.state_dict())`, by its text."""
    given = call.args[0] if call.args else None
    if not isinstance(given, ast.Call) or not isinstance(given.func, ast.Attribute):
        return False
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and given.func.attr == "state_dict"
        and ast.unparse(given.func.value) == ast.unparse(function.value)
    )
