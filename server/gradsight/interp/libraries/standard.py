"""Functions of the standard library that are more than a result: decorators, copies with changed fields, operators, processes."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

from gradsight.interp.libraries.custom_functions import CustomFunctions
from gradsight.interp.path_state import PathState, RaisedError
from gradsight.interp.python.expressions import ADD, BINARY
from gradsight.interp.syntax import mentions_attribute
from gradsight.model.library_objects import DataField, DecoratorMade, WorkerProcess
from gradsight.model.sites import Syntax
from gradsight.model.tensors import Tensor
from gradsight.model.values import (
    MISSING,
    ClassValue,
    External,
    Function,
    Instance,
    Mapping,
    Method,
    Native,
    Number,
    Partial,
    Seq,
    Stream,
    Unknown,
    Value,
)

RUNNABLE = (Function, Method, Partial)


def trains_itself(function: Value) -> bool:
    """Whether the text of a function differentiates: one that gathers data in another process changes nothing in this one."""
    inner = function.function if isinstance(function, Method) else function
    return not isinstance(inner, Function) or mentions_attribute(inner.defined().node, "backward")


class Standard(CustomFunctions):
    """`functools`, `dataclasses`, `operator` and `multiprocessing`."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.started: set[Syntax] = set()
        """The calls that made a process which was executed."""

    def wrapping_decorator(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`functools.wraps(function)`: a decorator that leaves what it decorates as it is."""
        return DecoratorMade("", self.path.site(node))

    def dataclass_decorator(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`dataclass(frozen=True)`; without an `__init__` of its own making it leaves the class as it is."""
        path = "dataclasses.dataclass" if kwargs.get("init") is not False else ""
        return DecoratorMade(path, self.path.site(node))

    def cache_decorator(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`lru_cache(maxsize=8)`, or `lru_cache(function)`: the function with a memory."""
        if args and isinstance(args[0], Function):
            made = args[0].copy()
            made.remembers = True
            return made
        most = args[0] if args else kwargs.get("maxsize", 128)
        bounded = most if isinstance(most, int) else None
        return DecoratorMade("functools.lru_cache", self.path.site(node), bounded)

    def cached_property(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`cached_property(function)`, called and not used as a decorator."""
        if not args or not isinstance(args[0], Function):
            return self.nn.unknown_result("a property of an unknown function", args, kwargs, node)
        made = args[0].copy()
        made.binding = "cached"
        return made

    def single_dispatch(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`singledispatch(function)`, called and not used as a decorator."""
        if not args or not isinstance(args[0], Function):
            return self.nn.unknown_result("overloads of an unknown function", args, kwargs, node)
        made = args[0].copy()
        made.overloads = []
        return made

    def make_context_manager(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`contextmanager(generator_function)`, called and not used as a decorator."""
        if not args or not isinstance(args[0], Function):
            return self.nn.unknown_result("a context manager of an unknown function", args, kwargs, node)
        manager = args[0].copy()
        manager.wraps_context = True
        return manager

    def replace_fields(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`dataclasses.replace(instance, field=value)`: a copy of the instance that holds the same objects otherwise."""
        if not args or not isinstance(args[0], Instance):
            return self.nn.unknown_result("copy of an unknown object", args, kwargs, node)
        copy = Instance(args[0].cls, self.path.site(node))
        copy.attributes = {**args[0].attributes, **kwargs}
        for value in kwargs.values():
            if isinstance(value, Tensor):
                value.kept_at = self.path.site(node)
        return copy

    def fields_of_class(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`dataclasses.fields(instance or class)`: what describes each field, in the order of the declarations."""
        cls = args[0].cls if args and isinstance(args[0], Instance) else args[0] if args else None
        if not isinstance(cls, ClassValue) or cls.has_unknown_base():
            return self.nn.unknown_result("fields of an unknown class", args, kwargs, node)
        declared: dict[str, Value] = {}
        for ancestor in reversed(cls.lineage()):
            if isinstance(ancestor, ClassValue):
                declared.update(ancestor.fields)
        described: list[Value] = []
        for name, default in declared.items():
            field = Instance(ClassValue("Field", [], {}, "plain"), self.path.site(node))
            known = default.default if isinstance(default, DataField) else default
            field.attributes = {
                "name": name,
                "default": External("dataclasses.MISSING") if known is MISSING else known,
                "type": Unknown("type of a field"),
            }
            described.append(field)
        return Seq("tuple", described)

    def weak_reference(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`weakref.ref(value)`: called, it gives the value back."""
        held = args[0] if args else None
        return Native("weakref.ref", lambda given, named, place: held)

    def weak_proxy(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        return args[0] if args else self.path.gap("proxy of nothing", node)

    def method_caller(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`operator.methodcaller(name, …)`: a function that calls the method of its argument."""
        if not args or not isinstance(args[0], str):
            return self.nn.unknown_result("caller of an unknown method", args, kwargs, node)
        name, given = args[0], args[1:]
        return Native(
            "operator.methodcaller",
            lambda values, named, place: self.objects.call_method(
                values[0], name, list(given), dict(kwargs), place
            ),
        )

    def repeat_value(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`itertools.repeat(value[, times])`."""
        times = args[1] if len(args) > 1 else kwargs.get("times")
        if isinstance(times, int):
            return Stream(itertools.repeat(args[0], min(times, 64)), True)
        return Stream(itertools.repeat(args[0] if args else None), True)

    def running_totals(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`itertools.accumulate(values, function, initial=…)`: each total is made when it is asked for."""
        iterator, length = self.objects.iterate(args[0]) if args else (iter(()), 0)
        function = args[1] if len(args) > 1 else kwargs.get("func")

        def totals() -> Iterator[Value]:
            total = kwargs.get("initial")
            started = total is not None
            if started:
                yield total
            for item in itertools.islice(iterator, 64):
                if started and function is None:
                    total = self.language.binary_values(ADD, total, item, node)
                else:
                    total = self.language.call(function, [total, item], {}, node) if started else item
                started = True
                yield total

        return Stream(totals(), length is not None)

    def call_reduce(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        if len(args) < 2:
            return Unknown("reduce")
        items, _ = self.objects.collect(args[1])
        if len(args) > 2:
            items.insert(0, args[2])
        if not items:
            return Unknown("reduce of nothing")
        total = items[0]
        for item in items[1:]:
            total = self.language.call(args[0], [total, item], {}, node)
        return total

    # -- processes ---------------------------------------------------------------------------------------------------

    def spawn_processes(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`torch.multiprocessing.spawn(function, args)`: each process calls the function with its number first."""
        function = args[0] if args else kwargs.get("fn")
        given = self.listed(args[1] if len(args) > 1 else kwargs.get("args"))
        if isinstance(function, RUNNABLE):
            self.language.call(function, [Number(), *given], {}, node)
        else:
            self.nn.unknown_result("a process of an unknown function", given, {}, node)
        return None

    def make_process(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`multiprocessing.Process(target=function, args=…)`: it begins to work when it is started."""
        target = kwargs.get("target", args[1] if len(args) > 1 else None)
        named = kwargs.get("kwargs")
        keywords = named.items if isinstance(named, Mapping) and named.exact else {}
        given = self.listed(kwargs.get("args", args[3] if len(args) > 3 else None))
        return WorkerProcess(
            "multiprocessing.Process", self.path.site(node), target, given,
            {name: value for name, value in keywords.items() if isinstance(name, str)},
        )  # fmt: skip

    def process_method(self, process: WorkerProcess, name: str, node: Syntax) -> Value:
        """Processes of one function do the same, each for itself: the first of those that train is executed."""
        if name not in ("start", "run"):
            return None if name in ("join", "terminate", "close", "kill") else Unknown(f"{name} of a process")
        function = process.target
        if not isinstance(function, RUNNABLE):
            self.nn.unknown_result("a process of an unknown function", process.args, process.kwargs, node)
        elif trains_itself(function) and process.site is not None and process.site.node not in self.started:
            self.started.add(process.site.node)
            waiting = set(self.path.waiting)
            # What a process raises ends that process alone, and what it waits for says nothing of this one.
            with contextlib.suppress(RaisedError):
                self.language.call(function, list(process.args), dict(process.kwargs), node)
            self.path.waiting = waiting
        return None

    def listed(self, given: Value) -> list[Value]:
        return list(given.items) if isinstance(given, Seq) else []

    def call_operator(self, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`operator.add(a, b)`, and `operator.iadd(a, b)`, which writes into `a`."""
        for kind, (operator_name, _) in BINARY.items() if len(args) == 2 else ():
            if operator_name == name:
                return self.language.binary_values(kind, args[0], args[1], node)
            if name == f"i{operator_name}":
                if isinstance(args[0], Tensor):
                    return self.facts.apply_operator(f"Tensor.__{name}__", args, {}, node)
                if not isinstance(args[0], Seq):
                    return self.language.binary_values(kind, args[0], args[1], node)
        if name == "setitem" and len(args) == 3:
            self.objects.set_item(args[0], args[1], args[2], node)
            return None
        if name == "getitem" and len(args) == 2:
            return self.objects.get_item(args[0], args[1], node)
        return self.nn.unknown_result(f"call of operator.{name}", args, kwargs, node)

    def star_map(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`itertools.starmap(function, rows)`: each row is spread when it is asked for."""
        iterator, length = self.objects.iterate(args[1]) if len(args) > 1 else (iter(()), 0)

        def results() -> Iterator[Value]:
            for row in itertools.islice(iterator, 64):
                given: list[Value] = list(row.items) if isinstance(row, Seq) else [Unknown("a row")]
                yield self.language.call(args[0], given, {}, node)

        return Stream(results(), length is not None)
