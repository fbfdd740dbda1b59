"""Calls out of the analysed file into other files of the workspace: one that costs too much, or fails, ends itself only.

*Distant call*: from the analysed file into another.  It may spend a part of what its path has left; what it would have
returned is not known beyond that, and whatever it was given is in unknown hands.  The same holds where it raises on the
arms that were chosen for conditions nobody knows: another arm would have returned.  One that only describes what it is given
(`descriptions.py`) is not followed at all.
"""

from __future__ import annotations

import ast
from collections.abc import Generator
from typing import Any, NamedTuple

from gradsight.interp.path_state import PathEnded, PathState, RaisedError
from gradsight.interp.paths.descriptions import only_describes
from gradsight.interp.paths.late_settings import LateSettings
from gradsight.interp.paths.roles import called_on_self, deeds_of
from gradsight.interp.paths.unfilled_methods import is_left_to_others, kept_by_others
from gradsight.interp.python.generators import value_of
from gradsight.interp.syntax import cuts_what_it_is_given, remembered, returns_value
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.interp.tensors.module_methods import NotFollowed
from gradsight.interp.used_names import use
from gradsight.interp.visible_text import names_bound
from gradsight.model.library_objects import Optimizer
from gradsight.model.sites import Frame, Unit
from gradsight.model.source import Source
from gradsight.model.tensors import Tensor
from gradsight.model.trace import StandInApplied
from gradsight.model.unfinished import leave_unfinished
from gradsight.model.values import (
    ClassValue,
    Function,
    Instance,
    Layer,
    Mapping,
    Names,
    Seq,
    Unknown,
    Value,
    Wrapper,
)

SHARE = 2
"""A distant call may spend one part in so many of what is left."""
RESERVED = 2
LEAST = 16
"""One part in so many of what is left is for a call that comes when nothing but the reserve is."""
KEPT_AT_THE_END = 8
"""A call that hardly any text follows leaves one part in so many of what is left, and what each node of that text may cost."""
COST_OF_A_NODE = 16
CALLS_OF_MODELS = 24
"""Where models are bounded, applying one may spend one part in so many."""
SHARE_OF_DATA = 8
"""A generator that holds no module and no tensor makes data: it may spend one part in so many of that."""
FEW = 3
"""So many unknown items come from a generator that is not followed any further."""
DESCRIBED = (Function, ClassValue)
LEFT_AS_IT_WAS = ("frame", "node", "grad_mode", "inference", "autocast", "mode_site", "ended_early")


class TooCostly(Exception):
    """A call that is not worth beginning."""


class Description(NamedTuple):
    """What was found out about a function: see `only_describes`; `asked`: the imports that were asked for, and the answers."""

    answer: frozenset[str] | None
    asked: dict[str, bool]
    has_finder: bool


class DistantCalls(LateSettings):
    """A language whose calls into other files are bounded."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.is_far = False
        self.watched: ast.AST | None = None
        """The function that is executed as an entry; `returned_inside` is what it returned last to its decorators."""
        self.returned_inside: Any = None
        self.reserve = -1
        """What calls that stand in no loop leave to those that do: models and data are made before anything is trained."""
        self.too_costly: dict[ast.AST, int] = {}
        """Functions that cost more than was left for them, and how much that was: they are not begun again with less."""

        self.bounds_models = False
        """Whether models of the file itself are bounded, too: where a path with them came to no end."""
        self.has_met_models = False
        """Whether there was a call that is bounded then."""
        self.raising: set[ast.AST] = set()
        """Functions that raised on arms chosen for conditions nobody knows: what was chosen then stays chosen on this path."""

    def execute_function(
        self, function: Function, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        path = self.path
        caller, home = path.frame.unit.path, path.module.path
        target = function.defined().unit
        path.entered.add(function.node)
        self.entry.meet_scalers(args, node)
        if args and is_left_to_others(path, function, args[0], node):
            if function.binding == "property":
                return kept_by_others(function, args[0])
            path.tell(StandInApplied([one for _, one in self.nn.tensors_of(args[0], "parameter")]))
            return self.entry.filled_in_elsewhere(args[0], function.name, args[1:], kwargs, node)
        if function.decorates is not None and target.path == home != function.unit.path:
            return self.through_decorator(function, function.decorates, args, kwargs, node)
        if target.path != home and args and isinstance(args[0], DESCRIBED):
            if self.is_description(function, args, kwargs):
                return args[0]
        is_near = target.path == home and not self.is_bounded(function, args)
        if self.is_far or caller != home or is_near or target.library:
            result = super().execute_function(function, args, kwargs, node)
            if function.node is self.watched:
                self.returned_inside = result
            self.meet_unfinished(function, args, kwargs, node, result)
            return result
        state = {name: getattr(path, name) for name in LEFT_AS_IT_WAS}
        own, decided, done = path.budget, len(path.decisions), len(path.log)
        is_model = is_of_module(function, args) and function.name == "forward"
        self.has_met_models = self.has_met_models or is_model
        path.budget = given = self.allowance(node, is_model)
        self.is_far = True
        reason = ""
        try:
            if given <= self.too_costly.get(function.node, -1):
                raise TooCostly("costs too much to follow")
            result = super().execute_function(function, args, kwargs, node)
            self.meet_unfinished(function, args, kwargs, node, result)
            return result
        except (TooCostly, NotFollowed) as ended:
            reason = f"{function.name} {ended}"
        except PathEnded:
            if path.budget >= 0:
                raise
            if function.name != "__init__":
                # An object that was made in part has more to tell than one that was not begun.
                self.too_costly[function.node] = given
            reason = f"{function.name} costs too much to follow"
        except RaisedError:
            if path.tries or not (
                len(path.decisions) > decided or function.node in self.raising or is_forward(function, args)
            ):
                raise
            self.raising.add(function.node)
            reason = f"{function.name} raises on the way that was taken through it"
        finally:
            self.is_far = False
            path.budget = own - (given - max(0, path.budget))
        for name, value in state.items():
            setattr(path, name, value)
        path.log[done:] = [action for action in path.log[done:] if action.verb not in ("train", "eval")]
        return self.not_followed(function, reason, args, kwargs, node)

    def is_bounded(self, function: Function, args: list[Any]) -> bool:
        """Whether a call of the file makes or applies a whole model, and may spend no more than one into another file."""
        if self.entry.making or not is_of_module(function, args):
            return False
        self.has_met_models = True
        if not self.bounds_models:
            return False
        caller = self.path.frame.function
        return caller is None or not is_of_module(caller, [self.path.frame.receiver])

    def not_followed(
        self, function: Function, reason: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Value:
        """What a call returns that was not followed to its end; whatever it was given is in unknown hands."""
        for value in [*args, *kwargs.values()]:
            if isinstance(value, (Instance, Layer)) and value.module is not None:
                # Whether it would have been left in training mode is not known.
                for _, inner in self.nn.modules_in(value):
                    if inner.module is not None:
                        inner.module.training = Unknown("mode of a module in other hands", "bool")
        if function.name == "__init__" and args and isinstance(args[0], Instance):
            leave_unfinished(args[0])
        # Applying a module leaves its gradients as they are.
        is_applied = is_forward(function, args) and not clears_gradients(args[0])
        result = self.nn.unknown_result(reason, args[1:] if is_applied else args, kwargs, node)
        if isinstance(result, Unknown) and cuts_what_it_is_given(function.node):
            # Whether it would have been cut off from what it was given is not known.
            result.graph = None
        elif isinstance(result, Unknown) and is_forward(function, args):
            self.compute_from_parameters(result, args, kwargs, node)
        return result

    def compute_from_parameters(
        self, result: Unknown, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> None:
        """What a `forward` that was not followed returns depends on the parameters of its module, as that of an unknown one."""
        parameters = [tensor for _, tensor in self.nn.tensors_of(args[0], "parameter")]
        given = self.entry.graphs_in(args[1:], kwargs)
        self.path.tell(StandInApplied(parameters))
        name = args[0].cls.name
        premise = f"what `{name}` returns depends on its parameters"
        self.entry.give_graph(result, [*parameters, *given], name, node, premise)
        self.entry.open_to_parts(result, args, kwargs)

    def meet_unfinished(
        self, function: Function, args: list[Any], kwargs: dict[str, Any], node: ast.AST, result: Value
    ) -> None:
        """What a module returns that was not made to its end went through parts of it that are not known."""
        if not is_forward(function, args) or not args[0].open or args[0].cls.has_unknown_base():
            return
        if not self.path.grad_mode or self.path.inference or cuts_what_it_is_given(function.node):
            return
        for value in result.items if isinstance(result, Seq) and result.kind == "tuple" else [result]:
            if type(value) is Unknown and value.graph is None and value.tensor is None:
                if not (value.plain or value.hint):
                    self.compute_from_parameters(value, args, kwargs, node)

    def run_generator(
        self, frame: Frame, body: list[ast.stmt], around: tuple[Wrapper, ...] = ()
    ) -> Generator[Value, Any, Value]:
        """The values of a generator; one of another file that costs too much gives what is not known instead."""
        path = self.path
        home, flow = path.module.path, super().run_generator(frame, body, around)
        held = list(frame.namespace.values())
        sent: Value = None
        while True:
            if self.is_far or frame.unit.path == home or frame.unit.library or path.frame.unit.path != home:
                try:
                    item = flow.send(sent)
                except StopIteration as stop:
                    return value_of(stop)
                try:
                    sent = yield item
                except RaisedError as thrown:
                    sent = yield flow.throw(thrown)
                continue
            state = {name: getattr(path, name) for name in LEFT_AS_IT_WAS}
            own = path.budget
            path.budget = given = self.allowance(path.node) // (
                1 if any(map(is_trained, held)) else SHARE_OF_DATA
            )
            if given <= self.too_costly.get(body[0], -1):
                path.budget = own
                break
            self.is_far = True
            try:
                item = flow.send(sent)
            except StopIteration as stop:
                return value_of(stop)
            except PathEnded:
                if path.budget >= 0:
                    raise
                self.too_costly[body[0]] = given
                break
            finally:
                self.is_far = False
                path.budget = own - (given - max(0, path.budget))
            sent = yield item
        for name, value in state.items():
            setattr(path, name, value)
        reason = f"{frame.name} costs too much to follow"
        for _ in range(FEW):
            yield self.nn.unknown_result(reason, held, {}, path.node)
        return self.path.gap(reason, path.node)

    def allowance(self, call: ast.AST, is_model: bool = False) -> int:
        """What a call into another file may spend, or one that applies a model."""
        own = int(self.path.budget)
        if self.bounds_models and is_model:
            return own // CALLS_OF_MODELS
        if self.entry.making == "part":
            # What a part may cost was set aside when it was begun: the reserve is counted of all that the path had.
            return own // SHARE
        if self.reserve < 0:
            self.reserve = own // RESERVED
        if is_in_loop(self.path.frame):
            return own // SHARE
        share = max(own - self.reserve, own // LEAST) // SHARE
        return max(share, own - own // KEPT_AT_THE_END - COST_OF_A_NODE * self.nodes_behind(call))

    def nodes_behind(self, call: ast.AST) -> int:
        """How much text follows a call that stands in no loop: behind it, and behind the calls that led to it."""
        frame, found = self.path.frame, 0
        while True:
            if frame.function is not None:
                found += parts_behind(frame.function.node, call)
            else:
                source = self.path.module.source
                units = self.path.program.units_of(source) if source is not None else [frame.unit]
                later = [unit for unit in units if unit.start > frame.unit.start]
                found += sum(length_of(statement) for unit in later for statement in unit.tree)
                found += sum(parts_behind(statement, call) for statement in frame.unit.tree)
            if frame.call_site is None:
                return found
            call, frame = frame.call_site.node, frame.call_site.frame

    def is_description(self, function: Function, args: list[Any], kwargs: dict[str, Any]) -> bool:
        """Whether a function of another file only describes the functions and classes that it is given, and gives the first back."""
        if function.wrappers or function.yields or function.remembers or function.unit.library:
            return False
        scope = function.scope
        while scope.outer is not None:
            scope = scope.outer
        source = scope.names.module.source if isinstance(scope.names, Names) else None
        signature = function.node.args
        named = [one.arg for one in (*signature.posonlyargs, *signature.args)]
        if source is None or len(args) > len(named):
            return False
        values = {**dict(zip(named, args)), **kwargs}
        given = frozenset(name for name, value in values.items() if isinstance(value, DESCRIBED))
        called = self.description_of(function.node, given, function.unit, source)
        return called is not None and not any(has_own(values[name], called) for name in given)

    def description_of(
        self, function: ast.AST, given: frozenset[str], unit: Unit, source: Source
    ) -> frozenset[str] | None:
        """What `only_describes` says; once for all files that use the function, as long as its imports lead where they led."""
        program = self.path.program
        for name in names_bound(unit):
            use(program.uses, source.path, name)
        if (function, given) in program.descriptions:
            return program.descriptions[function, given]
        asked: dict[str, bool] = {}

        def is_foreign(module: str, level: int) -> bool:
            if level or program.finder is None:
                return level == 0
            asked[module] = program.finder(module, 0, source.path) is None
            return asked[module]

        kept: dict[frozenset[str], Description] = function.__dict__.setdefault("descriptions", {})
        known = kept.get(given)
        holds = known is not None and known.has_finder is (program.finder is not None)
        # Every question is asked again: what an analysis rests on is known by what it asked.
        if (
            known is None
            or not holds
            or [is_foreign(one, 0) for one in known.asked] != [*known.asked.values()]
        ):
            statements = [statement for unit in program.units_of(source) for statement in unit.tree]
            answer = only_describes(function, given, statements, is_foreign)
            known = kept[given] = Description(answer, asked, program.finder is not None)
        program.descriptions[function, given] = known.answer
        return known.answer

    def through_decorator(
        self, function: Function, inner: Function, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any:
        """A function of the file in the coat that another file puts around it: a coat that fails is left away."""
        path = self.path
        state = {name: getattr(path, name) for name in LEFT_AS_IT_WAS}
        decided, syntax = len(path.decisions), inner.defined().node
        was_executed = syntax in path.executed
        path.executed.discard(syntax)
        try:
            return super().execute_function(function, list(args), dict(kwargs), node)
        except RaisedError:
            if path.tries or len(path.decisions) == decided or syntax in path.executed:
                raise
        finally:
            if was_executed:
                path.executed.add(syntax)
        for name, value in state.items():
            setattr(path, name, value)
        return self.execute_function(inner, args, kwargs, node)


def is_of_module(function: Function, args: list[Any]) -> bool:
    """Whether a function makes a module or applies it."""
    owner = args[0] if args else None
    return (
        function.name in ("__init__", "forward") and isinstance(owner, Instance) and owner.module is not None
    )


def is_trained(value: Value) -> bool:
    """Whether a value is, or may hold, something with a graph or parameters."""
    if isinstance(value, (Seq, Mapping)):
        inner = value.items if isinstance(value, Seq) else value.items.values()
        return any(map(is_trained, inner))
    return isinstance(value, (Tensor, Instance, Layer, Optimizer))


def is_forward(function: Function, args: list[Any]) -> bool:
    """Whether a module is applied, and nothing in the text of that says that it is not to be trained by it."""
    return (
        function.name == "forward"
        and not function.wrappers
        and bool(args)
        and isinstance(args[0], Instance)
        and args[0].module is not None
        and isinstance(function.node, ast.FunctionDef)
        and returns_value(function.node)
    )


def clears_gradients(module: Instance) -> bool:
    """Whether the `forward` of a module names `zero_grad`, or a method of its own that it calls does."""
    todo, seen = ["forward"], {"forward"}
    while todo:
        method, _ = module.cls.find(todo.pop())
        if isinstance(method, Function):
            text = method.defined().node
            if "zero_grad" in deeds_of(text).text_has:
                return True
            todo += called_on_self(text) - seen
            seen |= called_on_self(text)
    return False


def length_of(statement: ast.stmt) -> int:
    """What executing a statement goes through: that of a definition is short."""
    if isinstance(
        statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    ):
        return 1
    return remembered(statement, "length", lambda one: len(syntax_parts(one)))


def parts_behind(text: ast.AST, call: ast.AST) -> int:
    """How many statements and expressions of a text stand behind a call: counted once, since what is moved keeps its order."""
    counts: dict[ast.AST, int] = text.__dict__.setdefault("parts behind", {})
    known = counts.get(call)
    if known is None:
        end = (getattr(call, "end_lineno", 0), getattr(call, "end_col_offset", 0))
        known = counts[call] = sum(
            (part.lineno, part.col_offset) >= end
            for part in syntax_parts(text)
            if isinstance(part, (ast.stmt, ast.expr))
        )
    return known


def is_in_loop(frame: Frame) -> bool:
    """Whether what is being executed stands in a loop, or was called from one."""
    if frame.loops:
        return True
    site = frame.call_site
    while site is not None:
        if site.loops:
            return True
        site = site.call
    return False


def has_own(value: Function | ClassValue, methods: frozenset[str]) -> bool:
    """Whether a function or class has one of these methods, as far as there is a text of it that could be followed."""
    if isinstance(value, Function):
        return value.attributes is not None and not methods.isdisjoint(value.attributes)
    return any(
        not methods.isdisjoint(one.namespace) for one in value.lineage() if isinstance(one, ClassValue)
    )
