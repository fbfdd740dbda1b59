"""Two names for one tensor, and arguments that a callee changes: what one name means changes under another."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.detect.shape_questions import asks_about_shape
from gradsight.interp.syntax import names_read, statement_around, written_name
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.rule import quoted
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Assigned, CallReturned, NameRead, Wrote
from gradsight.model.values import Function, Unknown, Value

NO_NAMES: frozenset[str] = frozenset()
BY_HAND = ("graph", "no_grad")
IDEMPOTENT = {
    "clamp_",
    "clip_",
    "clamp_min_",
    "clamp_max_",
    "relu_",
    "hardtanh_",
    "abs_",
    "round_",
    "floor_",
    "ceil_",
    "trunc_",
    "sign_",
    "nan_to_num_",
    "zero_",
    "fill_",
    "triu_",
    "tril_",
    "masked_fill_",
}
"""Writes that change nothing when they are repeated."""
RESCALING = {"mul_", "div_", "add_", "sub_", "neg_", "true_divide_"}


class SharedNames:
    """Names of one frame that were bound to one tensor; `newer` are those that were bound to an older name."""

    __slots__ = ("frame", "names", "newer", "site", "value")

    def __init__(
        self, frame: Frame, value: Tensor | Unknown, names: list[str], newer: frozenset[str], site: Site
    ) -> None:
        self.frame = frame
        self.value = value
        """An unknown value may turn out to be a tensor when it is written."""
        self.names = names
        self.newer = newer
        self.site = site


class StaleName:
    """A name whose tensor was written under another one.  `renamed`: the write may be no more than a new name's start."""

    __slots__ = ("renamed", "site", "write", "written")

    def __init__(self, write: Any, site: Site, written: str, renamed: bool) -> None:
        self.write = write
        self.site = site
        self.written = written
        self.renamed = renamed


class SecondNames:
    """Reads under one name that come after a write under another."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.same_tensor: list[SharedNames] = []

    @staticmethod
    def concerned_by(statement: ast.Assign) -> bool:
        if len(statement.targets) == 1:
            return isinstance(statement.value, ast.Name) and isinstance(statement.targets[0], ast.Name)
        return sum(isinstance(one, ast.Name) for one in (statement.value, *statement.targets)) > 1

    def on_assigned(self, fact: Assigned) -> None:
        self.note_names(fact.statement)

    def note_names(self, node: ast.Assign) -> None:
        """`a = b` and `a = b = value`: two names for one tensor."""
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        newer = frozenset(names) if isinstance(node.value, ast.Name) else NO_NAMES
        if isinstance(node.value, ast.Name):
            names.append(node.value.id)
        if len(names) < 2:
            return
        value = self.path.frame.namespace.get(names[0])
        if not isinstance(value, (Tensor, Unknown)):
            return
        tensor = tensor_of(value)
        if tensor is not None:
            if tensor.is_leaf and tensor.requires_grad is not False:
                return
            if newer and is_blank(tensor):
                # Both names are for what will be put into it.
                return
        elif isinstance(value, Unknown) and not value.argument:
            return
        self.same_tensor.append(SharedNames(self.path.frame, value, names, newer, self.path.site(node)))

    def on_wrote(self, fact: Wrote) -> None:
        if self.same_tensor and fact.write.mode in BY_HAND:
            rescaled = fact.op in RESCALING and not fact.others and fact.region is None
            self.other_names_changed(fact.tensor, fact.site, rescaled)

    def other_names_changed(self, target: Tensor, site: Site, rescaled: bool) -> None:
        """An in-place write under one name changes what the other names mean.

        A plain rescaling under the newer name is a renaming more often than a mistake: it counts only where both names
        are used side by side.
        """
        frames = {site.frame, *(place.frame for place in site.callers())}
        for shared in self.same_tensor:
            frame = shared.frame
            tensor = tensor_of(shared.value) if frame in frames else None
            if tensor is None or tensor.storage is not target.storage:
                continue
            name = next((name for name in names_reaching(site, frame) if name in shared.names), "")
            if not name or frame.namespace.get(name) is not shared.value:
                continue
            for other in shared.names:
                if other != name and frame.namespace.get(other) is shared.value:
                    if frame.watched is None:
                        frame.watched = {}
                    renamed = rescaled and name in shared.newer
                    frame.watched[other] = StaleName(target.storage.writes[-1], shared.site, name, renamed)

    def on_call_returned(self, fact: CallReturned) -> None:
        function, result, node, start = fact.function, fact.result, fact.node, fact.started
        if isinstance(result, Tensor) and result.storage.writes and result.storage.writes[-1].tick > start:
            custom = function.owner is not None and function.owner.kind == "autograd"
            asked = isinstance(node, ast.Call) and asks_for_inplace(node, function)
            if isinstance(node, ast.Call) and not function.name.endswith("_") and not custom and not asked:
                self.check_mutated_argument(node, result, start)

    def check_mutated_argument(self, call: ast.Call, result: Tensor, start: int) -> None:
        """`y = f(x)` where f wrote into x and returned it: both names now mean the changed tensor."""
        frame = self.path.frame
        statement = statement_around(call, frame)
        if isinstance(statement, ast.Expr) and statement.value is call:
            return
        for argument in call.args:
            if not isinstance(argument, ast.Name):
                continue
            given = frame.namespace.get(argument.id)
            if not isinstance(given, Tensor) or given.storage is not result.storage:
                continue
            for write in result.storage.writes:
                if write.tick > start and write.site.frame.depth > frame.depth and write.mode in BY_HAND:
                    if frame.watched is None:
                        frame.watched = {}
                    frame.watched[argument.id] = StaleName(write, self.path.site(call), "the result", False)
                    break

    def on_name_read(self, fact: NameRead) -> None:
        name, node = fact.name, fact.node
        frame = self.path.frame
        if frame.watched is None:
            return
        stale = frame.watched[name]
        if not isinstance(stale, StaleName):
            return
        write = stale.write
        value = tensor_of(frame.namespace.get(name))
        if value is None or value.storage is not write.writer.storage:
            del frame.watched[name]
            return
        statement = statement_around(node, frame)
        if statement is not None:
            if asks_about_shape(node, statement, frame):
                return
            if stale.renamed and stale.written not in names_read(statement):
                return
            if statement is stale.site.node and write.op in IDEMPOTENT:
                # In the next iteration the same statement makes the same alias, and the same write changes nothing.
                return
            if returns_argument(name, statement, frame):
                # The caller is handed back what it gave to be filled.
                return
        del frame.watched[name]
        inside = write.site.frame is not frame
        told = f"{quoted(stale.written)} and {quoted(name)} become one tensor here"
        if inside:
            stored = quoted(stale.written)
            told = f"the result is stored {'' if stored.startswith('the ') else f'in {stored} '}here"
        steps = [
            Step("call" if inside else "made", stale.site, told),
            Step("read", self.path.site(node), f"{quoted(name)} is read here, with the new value"),
        ]
        self.claims.add(
            "alias-read-after-write",
            write.site,
            steps,
            how="argument" if inside else "name",
            write=write.op,
            target=name,
            alias=stale.written,
            written=self.path.text_of_target(write.site),
        )


def tensor_of(value: Value) -> Tensor | None:
    """The tensor that a name stands for, also if it was an unknown value that is used as one."""
    if isinstance(value, Unknown):
        return value.tensor
    return value if isinstance(value, Tensor) else None


def is_blank(tensor: Tensor) -> bool:
    """Whether a tensor has just been made to be filled: nothing was put into it yet."""
    call = tensor.site.node
    name = getattr(call.func, "attr", "") if isinstance(call, ast.Call) else ""
    return not tensor.storage.writes and name.removeprefix("new_").removesuffix("_like") in ("zeros", "empty")


def began_blank(tensor: Tensor) -> bool:
    """Whether a tensor was made to be filled, however much was put into it since."""
    call = tensor.root().site.node
    name = getattr(call.func, "attr", "") if isinstance(call, ast.Call) else ""
    return name.removeprefix("new_").removesuffix("_like") in ("zeros", "empty")


def returns_argument(name: str, statement: ast.AST, frame: Frame) -> bool:
    """Whether a statement returns, as it is, what the function was given under this name."""
    if not isinstance(statement, ast.Return) or frame.function is None:
        return False
    value = statement.value
    returned = value.elts if isinstance(value, ast.Tuple) else [value]
    return any(isinstance(part, ast.Name) and part.id == name for part in returned) and any(
        isinstance(inner, ast.arg) and inner.arg == name for inner in syntax_parts(frame.function.node.args)
    )


def asks_for_inplace(call: ast.Call, function: Function) -> bool:
    """Whether a call asks for its argument to be changed: `inplace=True`, by name or by position, or an argument `out`."""
    named = function.node.args
    parameters = [argument.arg for argument in [*named.posonlyargs, *named.args]]
    if parameters[:1] in (["self"], ["cls"]):
        del parameters[0]
    given = [*zip(parameters, call.args), *((keyword.arg, keyword.value) for keyword in call.keywords)]
    return any(
        name == "out"
        or (name in ("inplace", "in_place") and not (isinstance(value, ast.Constant) and not value.value))
        for name, value in given
    )


def names_reaching(site: Site, frame: Frame) -> list[str]:
    """The names of a frame through which a write was reached: there, or in what a call with a result was given."""
    if site.frame is frame:
        return names_written(site.node)
    call = next((place.node for place in site.callers() if place.frame is frame), None)
    if not isinstance(call, ast.Call) or not isinstance(statement_around(call, frame), ast.Assign):
        return []
    return names_written(call)


def names_written(node: ast.AST) -> list[str]:
    """The names through which an in-place statement may write: its target, or what a function gets."""
    name = written_name(node)
    names = [name] if name else []
    if isinstance(node, ast.Call):
        filled = [keyword.value for keyword in node.keywords if keyword.arg == "out"]
        if filled:
            # `torch.div(total, scale, out=step)` writes what is given as `out`, and reads the rest.
            return [one.id for one in filled if isinstance(one, ast.Name)]
        names += [argument.id for argument in node.args if isinstance(argument, ast.Name)]
        names += [keyword.value.id for keyword in node.keywords if isinstance(keyword.value, ast.Name)]
    return names
