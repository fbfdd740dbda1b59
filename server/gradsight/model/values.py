"""The values of the abstract machine.

Python's own constants (None, bool, int, float, complex, str, bytes, Ellipsis) stand for themselves.  Everything else is
one of the classes below, or a `Tensor`.  `Unknown` is a value with a reason; it remembers what was asked of it, so that
the same question gets the same answer on one path.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable, Iterator
from types import EllipsisType
from typing import Any, TypeGuard

from gradsight.model.sites import Site, Unit
from gradsight.model.tensors import NO_CUTS, Counter, Cut, Node, Shape, Tensor

CONSTANTS = frozenset({type(None), bool, int, float, complex, str, bytes, type(Ellipsis)})


class Unknown:
    """A value that is not known, and why.  `answers` keeps what was derived from it, so that it stays consistent."""

    __slots__ = (
        "answers", "argument", "asks", "carries", "condition", "cuts", "frozen", "given", "given_at", "graph", "hint", "is_handled", "is_outside", "is_setting", "part_of", "plain", "reason", "tensor",
    )  # fmt: skip

    def __init__(self, reason: str, hint: str = "") -> None:
        self.reason = reason
        self.hint = hint
        """`number`, `bool`, `text`, `array`, or empty when even the kind is unknown."""
        self.answers: dict[Hashable, Any] | None = None
        self.cuts: frozenset[Cut] = NO_CUTS
        self.argument = ""
        self.condition: Unknown | Number | None = None  # The one with the same truth, if that is known.
        self.carries = False  # It may hold a graph of known tensors: its maker was given some.
        self.tensor: Tensor | None = None  # What it is taken for once torch functions are applied to it.
        self.asks: Question | None = None  # Of a condition: which question about another value it answers.
        self.graph: Node | None = None  # Brought along if it is a tensor: its maker was given tensors of one.
        self.plain = False
        """If it is a tensor, it carries no graph: it came from a loader, or from code that was given none."""
        self.frozen = False  # It is a module whose parameters were told to need no gradient.
        self.is_setting = False  # It was read from settings, and brings no graph.
        self.is_outside = False
        """It was there before the function began that is executed by itself: an argument of it, or an attribute or item of one."""
        self.is_handled = False  # Code that is not known worked with it: its attributes and items may be new.
        self.given: tuple[Value, ...] = ()  # Modules and parameters that the code which made it was given.
        self.given_at: Site | None = None  # Where, if nothing else was given that could hold more.
        self.part_of: Layer | Instance | None = None
        """The stand-in for an unknown module, or the module of a library, that it is an attribute of."""

    def derived(self, key: Hashable, reason: str, hint: str = "") -> Unknown:
        """The same unknown for the same question."""
        answers = self.answers
        if answers is None:
            answers = self.answers = {}
        answer: Unknown | None = answers.get(key)
        if answer is None:
            answer = answers[key] = Unknown(reason, hint)
            answer.cuts, answer.carries = self.cuts, self.carries
            answer.graph, answer.plain, answer.is_setting = self.graph, self.plain, self.is_setting
            answer.given, answer.given_at = self.given, self.given_at
            if type(key) is tuple and key[0] in ("attr", "item"):
                answer.part_of, answer.is_outside = self.part_of, self.is_outside and not self.is_handled
                if self.argument and key[0] == "item":
                    answer.argument = self.argument
        return answer

    def hand_over(self) -> None:
        """Code that is not known gets it: what it holds may be new from here on."""
        self.is_handled = True
        for answer in (self.answers or {}).values():
            if type(answer) is Unknown and answer.is_outside:
                answer.is_outside = False
                answer.hand_over()

    def __repr__(self) -> str:
        return f"Unknown({self.reason!r})"


class Negated:
    """`not` of an unknown: decided together with it."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class Number:
    """A Python number whose value is not known, with the tensors it was read from (`item`, `float`, ...)."""

    __slots__ = ("answers", "cuts", "kind", "shifted")

    def __init__(self, cuts: frozenset[Cut] = NO_CUTS, kind: str = "number") -> None:
        self.cuts = cuts
        self.kind = kind
        self.answers: dict[Hashable, Any] | None = None
        self.shifted: tuple[Unknown | Number, int] | None = None
        """The number that it is the sum of, and the constant that was added to that."""

    reason = "a number computed at run time"


class Version(Number):
    """Numbers of writes, `tensor._version`, or a sum of several: known from one moment to another, not by themselves."""

    __slots__ = ("counters", "total")

    def __init__(self, counters: tuple[Counter, ...], total: int) -> None:
        super().__init__()
        self.counters = counters
        self.total = total

    def plus(self, other: Value) -> Version | None:
        """The sum with another such number, or with an int."""
        if isinstance(other, Version):
            both = sorted((*self.counters, *other.counters), key=id)
            return Version(tuple(both), self.total + other.total)
        return Version(self.counters, self.total + other) if isinstance(other, int) else None

    def minus(self, other: Value) -> int | None:
        """How far it is from another; a constant below zero is below every number of writes."""
        if isinstance(other, Version):
            same = len(self.counters) == len(other.counters) and all(
                mine is its for mine, its in zip(self.counters, other.counters)
            )
            return self.total - other.total if same else None
        return 1 if isinstance(other, int) and other < 0 else None


class AbsentGrad:
    """None, read from the `.grad` of a tensor; `cause` says why it is None."""

    __slots__ = ("cause", "owner", "site")

    def __init__(self, owner: Tensor, site: Site, cause: str) -> None:
        self.owner, self.site, self.cause = owner, site, cause


class Array:
    """A NumPy array; `tensor` is the tensor whose memory it shares, if any, `whole` the array that it is a part of."""

    __slots__ = ("cuts", "shape", "tensor", "whole")

    def __init__(self, tensor: Tensor | None = None, cuts: frozenset[Cut] = NO_CUTS, shape: Shape = None, whole: Array | None = None) -> None:  # fmt: skip
        self.tensor, self.cuts = tensor, cuts
        self.shape, self.whole = shape, whole


class Seq:
    """A list, tuple, set or deque.  If not `exact`, its items stand for an unknown number of such items."""

    __slots__ = ("alike", "exact", "fields", "items", "kind", "maxlen", "once", "owners", "partial", "placed", "site", "spent", "unlisted")  # fmt: skip

    def __init__(self, kind: str, items: list[Value], exact: bool = True, site: Site | None = None) -> None:
        self.kind, self.items, self.exact, self.site = kind, items, exact, site
        self.alike = False  # Those not listed are made as the listed: `[ones(3) for _ in range(n)]`.
        self.fields: tuple[str, ...] | None = None
        self.maxlen: int | None = None
        self.partial = False  # A loop that was left before its end would have put more of the kind into it.
        self.unlisted: int | None = 0  # How many more, where that is known.
        self.once = False  # It is an iterator in truth (`net.parameters()`, `filter(…)`), gone through once.
        self.spent: Site | None = None  # Where an iterator was gone through to its end.
        self.placed: dict[int, Value] | None = None  # What was stored at which index of an unknown length.
        self.owners: tuple[Module, ...] = ()  # The modules that members which are not listed belong to.


class Mapping:
    """A dict.  Keys are constants (or tuples of them, or the identity of an object); `rest` are values under unknown keys."""

    __slots__ = ("behind", "exact", "items", "keys", "kind", "rest", "site")

    def __init__(self, items: dict[Any, Value] | None = None, exact: bool = True, kind: str = "dict") -> None:
        self.items: dict[Any, Value] = items if items is not None else {}
        self.keys: dict[Any, Value] = {}  # For keys that are not constants: the key object itself.
        self.exact, self.kind = exact, kind
        self.rest: list[Value] = []
        self.site: Site | None = None
        self.behind: Any = None  # The object whose attributes it holds, and how; None for a dict of its own.


class Slice:
    """A slice object inside an index."""

    __slots__ = ("start", "step", "stop")

    def __init__(self, start: Value, stop: Value, step: Value) -> None:
        self.start, self.stop, self.step = start, stop, step


class Stream:
    """An iterator: wraps a Python iterator that yields abstract values.  `exact` = it ends where the real one ends."""

    __slots__ = ("exact", "iterator", "owners", "site", "spent")

    def __init__(self, iterator: Iterator[Value], exact: bool = True) -> None:
        self.iterator, self.exact = iterator, exact
        self.owners: tuple[Module, ...] = ()
        self.site: Site | None = None
        self.spent: Site | None = None  # Where it was gone through to its end.


class Scope:
    """Names of one namespace, looked up outwards."""

    __slots__ = ("names", "outer")

    def __init__(self, names: dict[str, Value], outer: Scope | None) -> None:
        self.names = names
        self.outer = outer


class Function:
    """A function of the analysed code, with its closure."""

    __slots__ = (
        "attributes", "binding", "decorates", "defaults", "deleter", "dispatch_on", "is_wrapped_unseen", "keyword_defaults", "most_remembered", "name",
        "node", "nonlocals", "overloads", "owner", "remembers", "scope", "setter", "unit", "wrappers", "wraps_context", "yields",
    )  # fmt: skip

    def __init__(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        scope: Scope,
        unit: Unit,
        defaults: list[Value],
        keyword_defaults: dict[str, Value],
    ) -> None:
        self.node = node
        self.name = getattr(node, "name", "<lambda>")
        self.scope = scope
        self.unit = unit
        self.defaults = defaults
        self.keyword_defaults = keyword_defaults
        self.owner: ClassValue | None = None
        self.binding = ""
        """`static`, `class`, `property`, `cached`, or empty for a plain function or method."""
        self.wrappers: tuple[Wrapper, ...] = ()
        """Grad modes and other contexts that decorators put around each call, with the decorator's place."""
        self.wraps_context = False
        self.remembers = False
        """Whether a cache gives back an earlier result for equal arguments."""
        self.most_remembered: int | None = None
        """How many results the cache keeps, if that is bounded."""
        self.setter: Value = None
        self.deleter: Value = None
        """The other pieces of a property."""
        self.overloads: list[tuple[Value, Value]] | None = None
        """For a function that `singledispatch` chooses by type: types and functions."""
        self.dispatch_on = 0
        self.yields: bool | None = None
        """Whether it is a generator function; worked out with its first call, as is what it declares nonlocal."""
        self.nonlocals: frozenset[str] = frozenset()
        self.attributes: dict[str, Value] | None = None
        self.decorates: Function | None = None
        """The function that a decorator put this one in place of."""
        self.is_wrapped_unseen = False  # By a decorator that is not known, and sees all that is given to it.

    def copy(self) -> Function:
        """The same function, to be wrapped or marked without changing what other names stand for."""
        copy = Function(self.node, self.scope, self.unit, self.defaults, self.keyword_defaults)
        for name in Function.__slots__:
            setattr(copy, name, getattr(self, name))
        return copy

    def plain(self) -> Function:
        """The function without its overloads."""
        copy = self.copy()
        copy.overloads = None
        return copy

    def defined(self) -> Function:
        """The function that the text binds to the name, without what decorators put around it."""
        return self if self.decorates is None else self.decorates.defined()

    def pieces(self) -> list[Function]:
        """The function and, if it is a property, what sets and deletes it."""
        return [self, *(one for one in (self.setter, self.deleter) if isinstance(one, Function))]


class Method:
    """A function bound to its receiver."""

    __slots__ = ("function", "receiver")

    def __init__(self, function: Function, receiver: Value) -> None:
        self.function = function
        self.receiver = receiver


class ClassValue:
    """A class of the analysed code.

    `kind`: `module` (derives from nn.Module), `autograd` (autograd.Function), `optimizer`, `dataset`, `tuple` (named
    tuple), `data` (dataclass), `enum`, `unknown` (a base is not known), `plain`.
    """

    __slots__ = (
        "ancestors", "bases", "changes", "fields", "has_fields", "intercepts", "kind", "name", "namespace", "node", "remembered", "scope", "unit",
    )  # fmt: skip

    def __init__(self, name: str, bases: list[Value], namespace: dict[str, Value], kind: str) -> None:
        self.name = name
        self.bases = bases
        self.ancestors: list[Value] | None = None
        """Those of its lineage, once somebody has asked: what a class derives from does not change."""
        self.namespace = namespace
        self.kind = kind
        self.node: ast.ClassDef | None = None
        self.unit: Unit | None = None
        self.scope: Scope | None = None
        self.fields: list[tuple[str, Value]] = []
        self.has_fields = False
        """Whether `dataclass` writes its `__init__`, which sets the fields and calls that of no ancestor."""
        self.intercepts: frozenset[str] = frozenset()
        """Names of properties and data descriptors, and of the hooks around all attributes."""
        self.changes = 0
        self.remembered: dict[str, tuple[int, set[str]]] = {}
        """Names found in it and its ancestors, by question, and how many times their namespaces had changed until then."""
        self.note_intercepted()

    def note_intercepted(self) -> None:
        """The namespace has changed: work out again which names the class has in its own hands."""
        self.changes += 1
        inherited = {name for base in self.bases if isinstance(base, ClassValue) for name in base.intercepts}
        own = {name for name, value in self.namespace.items() if _intercepts(name, value)}
        self.intercepts = frozenset((inherited - self.namespace.keys()) | own)

    def lineage(self) -> list[Value]:
        """The class and its ancestors, nearest first; a fair stand-in for the method resolution order."""
        if self.ancestors is None:
            classes: set[int] = set()
            others: list[Value] = []
            order: list[Value] = []
            for base in self.bases:
                for ancestor in base.lineage() if isinstance(base, ClassValue) else [base]:
                    if isinstance(ancestor, ClassValue):
                        if id(ancestor) in classes:
                            continue
                        classes.add(id(ancestor))
                    elif ancestor in others:
                        continue
                    else:
                        others.append(ancestor)
                    order.append(ancestor)
            self.ancestors = order
        return [self, *self.ancestors]

    def find(self, name: str) -> tuple[Value, ClassValue | None]:
        """The attribute and the class that defines it, or (MISSING, None)."""
        if name in self.namespace:
            return self.namespace[name], self
        for ancestor in self.ancestors or self.lineage():
            if isinstance(ancestor, ClassValue) and name in ancestor.namespace:
                return ancestor.namespace[name], ancestor
        return MISSING, None

    def has_unknown_base(self) -> bool:
        """Whether some ancestor, or what makes the instances, is outside what is known."""
        return any(
            isinstance(ancestor, Unknown)
            or (isinstance(ancestor, ClassValue) and ancestor.is_made_specially())
            for ancestor in self.lineage()
        )

    def is_made_specially(self) -> bool:
        """Whether a metaclass or `__new__` of the analysed code has a hand in making the instances."""
        keywords = self.node.keywords if self.node is not None else []
        return "__new__" in self.namespace or any(
            keyword.arg == "metaclass" and "ABCMeta" not in ast.unparse(keyword.value) for keyword in keywords
        )


ATTRIBUTE_HOOKS = {"__setattr__", "__getattribute__", "__delattr__"}


def _intercepts(name: str, value: Value) -> bool:
    if isinstance(value, Function):
        return value.binding == "property" or name in ATTRIBUTE_HOOKS
    return isinstance(value, Instance) and isinstance(value.cls.find("__set__")[0], Function)


class Instance:
    """An object of a class of the analysed code."""

    __slots__ = ("attributes", "cls", "escaped", "held", "module", "open", "site")

    def __init__(self, cls: ClassValue, site: Site | None) -> None:
        self.cls = cls
        self.attributes: dict[str, Value] = {}
        self.site = site
        self.open = cls.has_unknown_base()
        """True when attributes may exist that were not seen being set."""
        self.escaped = False
        self.module: ModuleState | None = None
        self.held: Mapping | Seq | None = None
        """What an instance of a class that derives from `dict` or `list` holds as such."""


class ModuleState:
    """What nn.Module adds to an object: training flag and the names that were registered."""

    __slots__ = ("backward_hooks", "forward_hooks", "initialised", "pre_hooks", "registered", "training")

    def __init__(self) -> None:
        self.training: Value = True
        self.initialised = False
        self.registered: dict[str, str] = {}
        """Attribute name -> `parameter`, `buffer` or `module`."""
        self.pre_hooks: list[Value] = []
        self.forward_hooks: list[Value] = []
        self.backward_hooks: list[Value] = []
        """Those that see the gradients of the whole module."""


class Layer:
    """An object of one of torch's own module classes (`nn.Linear`, `nn.Sequential`, ...)."""

    __slots__ = ("attributes", "escaped", "module", "name", "options", "site")

    def __init__(self, name: str, options: dict[str, Any], site: Site | None) -> None:
        self.name = name
        self.options = options
        self.site = site
        self.attributes: dict[str, Value] = {}
        self.module = ModuleState()
        self.module.initialised = True
        self.escaped = False


class External:
    """Something that lives in a library, by its dotted name."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"External({self.path!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, External) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)


class Bound:
    """A method of a value that is not an Instance: `tensor.exp`, `items.append`, `optimizer.step`."""

    __slots__ = ("name", "receiver")

    def __init__(self, receiver: Value, name: str) -> None:
        self.receiver = receiver
        self.name = name


class Partial:
    """functools.partial."""

    __slots__ = ("args", "function", "kwargs", "site")

    def __init__(
        self, function: Value, args: list[Value], kwargs: dict[str, Value], site: Site | None = None
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.site = site


class Native:
    """A function of ours standing for a library function that was made at run time."""

    __slots__ = ("call", "name")

    def __init__(self, name: str, call: Callable[..., Value]) -> None:
        self.name = name
        self.call = call


class Super:
    """`super()` inside a method."""

    __slots__ = ("owner", "receiver")

    def __init__(self, owner: ClassValue, receiver: Value) -> None:
        self.owner = owner
        self.receiver = receiver


class Names(dict[str, "Value"]):
    """The namespace of an imported module, `shared` if many paths use it; `waiting` are names that nobody has needed yet."""

    __slots__ = ("module", "shared", "waiting")

    def __init__(self, module: PythonModule) -> None:
        super().__init__()
        self.module = module
        self.waiting: dict[str, list[Any]] = {}
        self.shared = False


class PythonModule:
    """A module of the analysed workspace."""

    __slots__ = ("executions", "loaded", "name", "namespace", "path", "source")

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self.path = path
        self.namespace = Names(self)
        self.loaded = False
        self.executions: dict[str, Any] = {}
        self.source: Any = None
        """The text to execute when something of the module is first needed."""


class Pending:
    """A name imported from a workspace module that has not been executed yet."""

    __slots__ = ("module", "name")

    def __init__(self, module: PythonModule, name: str) -> None:
        self.module = module
        self.name = name


class Opaque:
    """A library object that the machine models; what it holds is told by its class."""

    def __init__(self, path: str, site: Site | None) -> None:
        self.path = path
        self.site = site
        self.attributes: dict[str, Value] = {}
        """What programs set on it, and what of its own they may read as it is."""
        self.escaped = False


class Missing:
    """The absence of a value, where None would be a value."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING = Missing()

Module = Instance | Layer
"""An object with the parts of a module, if it is an `Instance` whose `module` is known."""
Constant = None | bool | int | float | complex | str | bytes | EllipsisType
"""What stands for itself."""
Wrapper = tuple["Value", Site]
"""What a decorator puts around each call, and where the decorator stands."""
Leave = Callable[[], object]
"""What to run when a context is left."""
Question = tuple[str, Unknown | Number, "Value | tuple[Value, ...]"]
"""The kind of question, the value it is about, and the constant (or the constants) it is held against."""
Value = (
    Constant | range | Tensor | Unknown | Negated | Number | AbsentGrad | Array | Seq | Mapping | Slice | Stream | Function
    | Method | ClassValue | Instance | Layer | External | Bound | Partial | Native | Super | PythonModule | Pending | Opaque
    | Missing
)  # fmt: skip
"""What an expression can have for its value."""


def module_state(module: Module) -> ModuleState:
    """What nn.Module adds to an object that is known to be a module."""
    state = module.module
    if state is None:
        raise TypeError("an object without the parts of a module")
    return state


def is_constant(value: object) -> TypeGuard[Constant]:
    """Whether the value stands for itself."""
    return type(value) in CONSTANTS


def tensors_in(value: Value, depth: int = 0) -> list[Tensor]:
    """The tensors inside a value, containers included."""
    if isinstance(value, Tensor):
        return [value]
    items: Iterable[Value] = value.items if isinstance(value, Seq) else ()
    if isinstance(value, Mapping):
        items = [*value.items.values(), *value.rest]
    elif isinstance(value, Instance) and value.cls.kind in ("tuple", "data"):
        items = value.attributes.values()
    return [one for item in items for one in tensors_in(item, depth + 1)] if items and depth <= 4 else []
