"""Calls of the analysed code's own functions and classes.

Calls are inlined, so that what a callee does to its arguments is seen.  A function that calls itself too often
(`activations.py`), or a stack that is too deep, gives an unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Generator
from typing import Any

from gradsight.interp.library_places import DRIVER, note_answer
from gradsight.interp.path_state import PathEnded, PathState, RaisedError
from gradsight.interp.python.activations import Activations
from gradsight.interp.python.class_making import made_class
from gradsight.interp.python.definitions import nonlocal_names, yields
from gradsight.interp.python.expected_errors import catches_at_yield
from gradsight.interp.python.expressions import Expressions
from gradsight.interp.python.generators import generator_run
from gradsight.interp.python.open_keywords import OpenKeywords
from gradsight.interp.python.statements import Returned
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.library_objects import DataField, DecoratorMade, GeneratorContext
from gradsight.model.plain_classes import is_plain_class
from gradsight.model.sites import Frame, Site
from gradsight.model.trace import ArgumentsBound, CallReturned
from gradsight.model.unfinished import leave_unfinished
from gradsight.model.unseen_holders import holds_nothing, may_be_held, may_require_grad
from gradsight.model.values import (
    MISSING,
    Bound,
    ClassValue,
    External,
    Function,
    Instance,
    Layer,
    Mapping,
    Method,
    ModuleState,
    Native,
    Opaque,
    Partial,
    Scope,
    Seq,
    Stream,
    Super,
    Unknown,
    Value,
    Wrapper,
    tensors_in,
)

DEEPEST = 40
CONTAINERS = {"builtins.dict", "builtins.list", "collections.OrderedDict", "collections.UserDict"}


class Calls(Expressions):
    """Calling functions, making classes and instances."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.results: dict[Any, Value] = {}
        """What functions with a cache have given back on this path, by function and arguments."""
        self.activations = Activations()

    def evaluate_call(self, node: ast.Call) -> Value:
        target = node.func
        if type(target) is ast.Attribute:
            receiver = self.evaluate(target.value)
            args, kwargs = self.evaluate_arguments(node)
            self.path.node = node
            return self.objects.call_method(receiver, target.attr, args, kwargs, node)
        function = self.evaluate(target)
        if isinstance(function, External) and function.path == "builtins.super" and not node.args:
            return self.make_super()
        args, kwargs = self.evaluate_arguments(node)
        self.path.node = node
        return self.call(function, args, kwargs, node)

    def evaluate_arguments(self, node: ast.Call) -> tuple[list[Value], dict[str, Value]]:
        args: list[Any] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                for count, item in enumerate(self.objects.iterate(self.evaluate(argument.value))[0]):
                    if count >= 64:
                        break
                    args.append(item)
            else:
                args.append(self.evaluate(argument))
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg is not None:
                kwargs[keyword.arg] = value
            elif isinstance(value, Mapping):
                kwargs.update({key: item for key, item in value.items.items() if isinstance(key, str)})
            if keyword.arg is None and (isinstance(value, Unknown) or not getattr(value, "exact", True)):
                kwargs = OpenKeywords(kwargs)
                kwargs.spread = value
        return args, kwargs

    def call(self, function: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        """Call any value."""
        if isinstance(function, Function):
            return self.call_function(function, args, kwargs, node)
        if isinstance(function, External):
            return self.libraries.call_external(function.path, args, kwargs, node)
        if isinstance(function, Method):
            return self.call_function(function.function, [function.receiver, *args], kwargs, node)
        if isinstance(function, ClassValue):
            return self.instantiate(function, args, kwargs, node)
        if isinstance(function, Instance):
            return self.call_instance(function, args, kwargs, node)
        if isinstance(function, Layer):
            return self.nn.call_layer(function, args, kwargs, node)
        if isinstance(function, Bound):
            return self.objects.call_method(function.receiver, function.name, args, kwargs, node)
        if isinstance(function, Partial):
            return self.autograd.call_partial(
                function, [*function.args, *args], {**function.kwargs, **kwargs}, node
            )
        if isinstance(function, Native):
            return function.call(args, kwargs, node)
        if isinstance(function, Opaque):
            return self.nn.call_opaque(function, args, kwargs, node)
        if isinstance(function, Unknown):
            return self.libraries.call_unknown(function, args, kwargs, node)
        return self.nn.unknown_result("call of a value that is not known to be callable", args, kwargs, node)

    # -- functions ---------------------------------------------------------------------------------------------------

    def call_function(
        self, function: Function, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        started, recorded = self.path.tick, self.path.grad_mode
        result = self.result_of(function, args, kwargs, node)
        self.path.tell(CallReturned(function, result, node, started, recorded))
        return result

    def result_of(
        self, function: Function, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        if function.overloads is not None:
            chosen = self.objects.overload_for(function, args)
            if chosen is None:
                return self.nn.unknown_result(
                    "a function chosen by a type that is not known", args, kwargs, node
                )
            return self.call(chosen, args, kwargs, node)
        if function.remembers:
            return self.remembered_result(function, args, kwargs, node)
        return self.execute_function(function, args, kwargs, node)

    def remembered_result(
        self, function: Function, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """The result of a function with a cache: that of an earlier call with the same arguments, if there was one."""
        given = [*args, *kwargs.values()]
        keys = tuple(self.objects.mapping_key(value) for value in given)
        if MISSING in keys:
            return self.execute_function(function, args, kwargs, node)
        call = (id(function.node), keys, tuple(kwargs))
        if call not in self.results:
            self.path.kept_alive.append(given)
            fresh = self.results[call] = self.execute_function(function, args, kwargs, node)
            self.keep_at_cache(function, fresh)
        # The result asked for last is the last to go.
        result = self.results[call] = self.results.pop(call)
        if function.most_remembered is not None:
            mine = [other for other in self.results if other[0] == call[0]]
            for oldest in mine[: max(0, len(mine) - function.most_remembered)]:
                del self.results[oldest]
        return result

    def keep_at_cache(self, function: Function, result: Value) -> None:
        """What a cache holds is kept at the decorator that makes the cache."""
        kept = Site(
            cache_of(function),
            Frame(function.name, function.unit, {}, function.scope, 1, self.path.numbering),
        )
        for tensor in tensors_in(result):
            tensor.kept_at = kept

    def left_out(self, reason: str, args: list[Value], node: ast.AST) -> Value:
        """A call is not executed: what it does to the object it was made on is not known."""
        if args and isinstance(args[0], Instance):
            leave_unfinished(args[0])
        return self.path.gap(reason, node)

    def execute_function(
        self, function: Function, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        frame = self.path.frame
        if frame.depth >= DEEPEST:
            return self.left_out("call stack too deep", args, node)
        if refusal := self.activations.refusal(function, args, kwargs, frame, node):
            return self.left_out(refusal, args, node)
        syntax, repeats = function.node, self.activations.repeats
        if function.is_wrapped_unseen:
            may_be_held([*args, *kwargs.values()])
        names = self.bind_arguments(function, args, kwargs)
        callee = Frame(
            function.name,
            function.unit,
            names,
            Scope(names, function.scope),
            frame.depth + 1,
            self.path.numbering,
        )
        callee.function = function
        callee.call_site = Site(node, frame)
        callee.guards, callee.loops, callee.repeats = frame.guards, frame.loops, repeats
        if frame.expecting and (frame.expecting == "specific" or is_argument(node, frame)):
            callee.expecting = frame.expecting
        callee.owner = function.owner
        callee.receiver = args[0] if args else None
        if self.path.isolated and not self.path.unheard:
            self.path.activations.append(callee)
        self.path.executed.add(syntax)
        if not self.path.grad_mode:
            self.path.executed_quietly.add(syntax)
        if isinstance(syntax, ast.Lambda):
            previous = self.path.enter(callee)
            leave = self.enter_wrappers(function.wrappers) if function.wrappers else None
            try:
                return self.evaluate(syntax.body)
            finally:
                self.path.frame = previous
                if leave is not None:
                    leave()
        if function.yields is None:
            function.yields, function.nonlocals = yields(function), nonlocal_names(syntax)
        if function.yields:
            around = tuple(one for one in function.wrappers if self.wraps_resumes(one[0]))
            self.path.generators.add(flow := self.run_generator(callee, syntax.body, around))
            stream = Stream(flow, exact=True)
            if function.wraps_context:
                made_by, catches = (function, args, kwargs), catches_at_yield(syntax)
                return GeneratorContext(function.name, self.path.site(node), stream, catches, made_by)
            return stream
        restore = self.enter_wrappers(function.wrappers) if function.wrappers else None
        previous = self.path.enter(callee)
        try:
            status = self.execute(syntax.body)
        finally:
            self.path.frame = previous
            if restore is not None:
                restore()
        result = status.value if isinstance(status, Returned) else None
        if frame.unit.library and not callee.unit.library:
            note_answer(self.path, frame, callee, node, result is not None)
        self.function_returned(function, callee, args, result, node)
        return result

    def function_returned(
        self, function: Function, frame: Frame, args: list[Value], result: Value, node: ast.AST
    ) -> None:
        """Hook: a call is over."""

    def run_generator(
        self, frame: Frame, body: list[ast.stmt], around: tuple[Wrapper, ...] = ()
    ) -> Generator[Value, Any, Value]:
        return generator_run(self, frame, body, around)

    def bind_arguments(
        self, function: Function, args: list[Value], kwargs: dict[str, Value]
    ) -> dict[str, Value]:
        signature = function.node.args
        names: dict[str, Any] = {}
        positional = [*signature.posonlyargs, *signature.args]
        given = dict(kwargs)
        first_default = len(positional) - len(function.defaults)
        for index, parameter in enumerate(positional):
            name = parameter.arg
            if index < len(args):
                names[name] = args[index]
                given.pop(name, None)
            elif name in given:
                names[name] = given.pop(name)
            elif index >= first_default:
                default = self.default_of(function, name, function.defaults[index - first_default])
                names[name] = self.perhaps_given(kwargs, name) if default is None else default
            else:
                names[name] = self.entry.missing_argument(function, parameter)
        if signature.vararg is not None:
            names[signature.vararg.arg] = Seq("tuple", list(args[len(positional) :]))
        for parameter in signature.kwonlyargs:
            name = parameter.arg
            if name in given:
                names[name] = given.pop(name)
            elif name in function.keyword_defaults:
                default = self.default_of(function, name, function.keyword_defaults[name])
                names[name] = self.perhaps_given(kwargs, name) if default is None else default
            else:
                names[name] = self.entry.missing_argument(function, parameter)
        if signature.kwarg is not None:
            names[signature.kwarg.arg] = Mapping(given, not isinstance(kwargs, OpenKeywords))
        if self.path.is_watched:
            self.path.tell(ArgumentsBound(function, names))
        return names

    def perhaps_given(self, kwargs: dict[str, Value], name: str) -> Value:
        """An argument that is None unless a dict that was spread into the call holds it, as a batch holds `labels`."""
        if not isinstance(kwargs, OpenKeywords):
            return None
        spread = kwargs.spread
        return (
            self.objects.get_item(spread, name, self.path.node)
            if isinstance(spread, Unknown)
            else Unknown(f"item {name}")
        )

    def make_super(self) -> Value:
        frame = self.path.frame
        if frame.owner is not None and frame.receiver is not None:
            return Super(frame.owner, frame.receiver)
        if isinstance(frame.receiver, Instance):
            # Whatever an unknown ancestor does, it may do to the instance.
            frame.receiver.open = True
        return self.path.gap("super() outside a method")

    # -- decorators --------------------------------------------------------------------------------------------------

    def decorate(self, decorator: ast.expr, function: Value) -> Value:
        """What a decorated name is bound to."""
        value = self.evaluate(decorator)
        path = value.path if isinstance(value, (External, Opaque)) else ""
        if isinstance(function, Function):
            if path in ("builtins.staticmethod", "abc.abstractstaticmethod"):
                function.binding = "static"
                return function
            if path == "builtins.classmethod":
                function.binding = "class"
                return function
            if path in ("builtins.property", "abc.abstractproperty"):
                function.binding = "property"
                return function
            if path == "functools.cached_property":
                function.binding = "cached"
                return function
            if path in ("functools.lru_cache", "functools.cache"):
                function.remembers = True
                function.most_remembered = value.most if isinstance(value, DecoratorMade) else None
                return function
            if path in ("functools.singledispatch", "functools.singledispatchmethod"):
                function.overloads, function.dispatch_on = [], int(path.endswith("method"))
                return function
            if path in ("contextlib.contextmanager", "contextlib.asynccontextmanager"):
                function.wraps_context = True
                return function
            if self.nn.mode_of(value) is not None or self.wraps_functions(value):
                return self.wrapped_in(value, function, self.path.site(decorator))
            if isinstance(value, Bound) and value.name in ("setter", "deleter", "getter", "register"):
                if isinstance(value.receiver, Function):
                    return self.call(value, [function], {}, decorator)
                return value.receiver
            if isinstance(value, (Function, Method, Instance, ClassValue, Partial)):
                return self.call(value, [function], {}, decorator)
            if may_require_grad(value):
                function.is_wrapped_unseen = not holds_nothing(path)
        return function

    def decorate_class(self, decorator: ast.expr, value: Value) -> Value:
        decorated = self.evaluate(decorator)
        path = decorated.path if isinstance(decorated, (External, Opaque)) else ""
        if isinstance(value, ClassValue) and path.endswith(
            ("dataclass", "dataclasses.dataclass", "attr.s", "define")
        ):
            value.kind = "data" if value.kind == "plain" else value.kind
            value.has_fields = "__init__" not in value.namespace
        elif isinstance(decorated, (Function, Method)):
            # A registry takes note of the class and hands it back.
            result = self.call(decorated, [value], {}, decorator)
            return result if isinstance(result, ClassValue) else value
        return value

    # -- classes -----------------------------------------------------------------------------------------------------

    def make_class(self, node: ast.ClassDef, bases: list[Value]) -> ClassValue:
        return made_class(self, node, bases)

    def instantiate(
        self, cls: ClassValue, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        if cls.kind == "enum":
            return self.path.gap("enumeration member", node)
        instance = Instance(cls, self.path.site(node))
        maker, _ = cls.find("__new__")
        if isinstance(maker, Function) and is_plain_class(cls):
            made = self.call_function(maker, [cls, *args], kwargs, node)
            if isinstance(made, Instance) and cls in made.cls.lineage():
                instance = made
            elif not isinstance(made, Unknown):
                return made
        if args and isinstance(args[0], Function) and self.nn.is_mode_path(self.guard_path(cls)):
            # A mode without parentheses: making it with a function wraps the function.
            return self.wrapped_in(instance, args[0], self.path.site(node))
        if cls.kind == "module":
            instance.module = ModuleState()
            self.path.modules_made.append(instance)
        elif cls.unit is not None and cls.unit.library and DRIVER in cls.namespace:
            self.path.startable.append(instance)
        fields = [
            field
            for ancestor in reversed(cls.lineage())
            if isinstance(ancestor, ClassValue)
            for field in ancestor.fields
        ]
        base = next(
            (one.path for one in cls.lineage() if isinstance(one, External) and one.path in CONTAINERS), ""
        )
        if base:
            instance.held = Seq("list", []) if base == "builtins.list" else Mapping({})
        init, defined = cls.find("__init__")
        by_fields = next(
            (one for one in cls.lineage() if one is defined or getattr(one, "has_fields", False)), None
        )
        if isinstance(init, Function) and by_fields is defined:
            try:
                self.call_function(init, [instance, *args], kwargs, node)
            except (PathEnded, RaisedError):
                leave_unfinished(instance)
                raise
        elif cls.kind in ("data", "tuple") or by_fields is not defined:
            self.fill_fields(instance, fields, args, kwargs)
            after, _ = cls.find("__post_init__")
            if isinstance(after, Function):
                self.call_function(after, [instance], {}, node)
        elif cls.kind == "module":
            self.nn.init_module(instance, args, kwargs, node)
        elif instance.held is not None:
            self.fill_held(instance.held, args, kwargs, node)
        elif init is MISSING:
            self.init_guard(instance, args, kwargs, node)
        if cls.kind == "optimizer":
            return self.nn.own_optimizer(cls, args, kwargs, node)
        return instance

    def fill_held(
        self, held: Mapping | Seq, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> None:
        """`dict.__init__` and `list.__init__`."""
        if isinstance(held, Seq):
            self.objects.sequence_method(held, "extend", args, {}, node)
            return
        given = self.objects.builtin_dict(args, kwargs, node)
        if isinstance(given, Mapping):
            self.objects.mapping_method(held, "update", [given], {}, node)
        else:
            held.exact = False

    def fill_fields(
        self, instance: Instance, fields: list[tuple[str, Value]], args: list[Value], kwargs: dict[str, Value]
    ) -> None:
        for index, (name, default) in enumerate(fields):
            if index < len(args):
                value = args[index]
            elif name in kwargs:
                value = kwargs[name]
            elif default is not MISSING:
                value = self.field_default(default)
            else:
                value = Unknown(f"field {name} was not given")
            instance.attributes[name] = value

    def field_default(self, default: Value) -> Value:
        if isinstance(default, DataField):
            if default.makes_default:
                return self.call(default.factory, [], {}, self.path.node)
            return default.default
        return default

    def call_instance(
        self, instance: Instance, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        method, _ = instance.cls.find("__call__")
        if isinstance(method, Function):
            return self.call_function(method, [instance, *args], kwargs, node)
        if instance.cls.kind == "module":
            return self.nn.call_module(instance, args, kwargs, node)
        if args and isinstance(args[0], Function) and self.wraps_functions(instance):
            return self.wrapped_in(instance, args[0], self.path.site(node))
        return self.libraries.call_plain_object(instance, args, kwargs, node)

    def bind_method(self, value: Value, receiver: Value, cls: Value) -> Value:
        """An attribute found on a class, as it is seen on an instance."""
        if isinstance(value, Function):
            if value.binding == "static":
                return value
            if value.binding == "class":
                return Method(value, cls)
            if value.binding == "property":
                return self.call_function(value, [receiver], {}, self.path.node)
            if value.binding == "cached":
                result = self.call_function(value, [receiver], {}, self.path.node)
                if isinstance(receiver, Instance):
                    receiver.attributes[value.name] = result
                    self.keep_at_cache(value, result)
                return result
            return Method(value, receiver)
        if isinstance(value, Instance):
            getter, _ = value.cls.find("__get__")
            if isinstance(getter, Function):
                return self.call_function(getter, [value, receiver, cls], {}, self.path.node)
        return value

    def instance_operator(self, name: str, left: Value, right: Value, node: ast.AST) -> Value:
        for owner, other, method in ((left, right, f"__{name}__"), (right, left, f"__r{name}__")):
            if isinstance(owner, Instance):
                function, _ = owner.cls.find(method)
                if isinstance(function, Function):
                    return self.call_function(function, [owner, other], {}, node)
        return self.path.gap("arithmetic on objects", node)


def is_argument(node: ast.AST, frame: Frame) -> bool:
    """Whether what is called is a function that the running one was given."""
    function = frame.function
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and function is not None
        and any(
            isinstance(inner, ast.arg) and inner.arg == node.func.id
            for inner in syntax_parts(function.node.args)
        )
    )


def cache_of(function: Function) -> ast.AST:
    """The decorator that gives a function its cache."""
    decorators = getattr(function.node, "decorator_list", [])
    return next((one for one in decorators if "cache" in ast.unparse(one)), function.node)
