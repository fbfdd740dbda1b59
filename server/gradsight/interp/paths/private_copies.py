"""Copies of what a shared module holds, so that a path changes nothing but its own; and what was changed nevertheless.

*Shared* values hold no tensors and no torch modules: numbers, texts, containers, functions, classes, plain objects and unknown values.
Functions and classes stay the same objects everywhere; what they hold is copied when it is read.
"""

from __future__ import annotations

from typing import Any, TypeVar

from gradsight.interp.shared_names import EnclosedNames
from gradsight.model.values import (
    Bound,
    ClassValue,
    Function,
    Instance,
    Mapping,
    Method,
    Negated,
    Number,
    Opaque,
    Partial,
    PythonModule,
    Seq,
    Stream,
    Unknown,
    Value,
)

CHANGEABLE = (Unknown, Seq, Mapping, Instance, Opaque, Stream, Partial, Method, Bound, Negated)
Memo = dict[int, Value]
Some = TypeVar("Some")
State = tuple[Any, dict[str, Any]]
"""An object, and what its fields held: containers by their content."""


def private_copy(value: Value, memo: Memo) -> Value:
    """The same value for one path alone; whatever was one object stays one."""
    if not isinstance(value, CHANGEABLE):
        return value
    known = memo.get(id(value))
    if known is not None:
        return known
    if isinstance(value, Seq):
        memo[id(value)] = seq = _alike(value, Seq)
        seq.items = [private_copy(item, memo) for item in value.items]
        seq.placed = {place: private_copy(item, memo) for place, item in (value.placed or {}).items()} or None
        return seq
    if isinstance(value, Mapping):
        memo[id(value)] = mapping = _alike(value, Mapping)
        mapping.items = {key: private_copy(item, memo) for key, item in value.items.items()}
        mapping.keys = {key: private_copy(item, memo) for key, item in value.keys.items()}
        mapping.rest = [private_copy(item, memo) for item in value.rest]
        if value.behind is not None:
            owner, how = value.behind
            mapping.behind = (private_copy(owner, memo), how)
            if how == "shared":
                mapping.items = mapping.behind[0].attributes
        return mapping
    if isinstance(value, Instance):
        memo[id(value)] = instance = _alike(value, Instance)
        instance.attributes = {key: private_copy(item, memo) for key, item in value.attributes.items()}
        held = private_copy(value.held, memo)
        instance.held = held if isinstance(held, (Mapping, Seq)) else None
        return instance
    return _copy_of_other(value, memo)


def _copy_of_other(value: Value, memo: Memo) -> Value:
    if isinstance(value, Unknown):
        memo[id(value)] = unknown = _alike(value, Unknown)
        if isinstance(value.condition, Unknown):
            condition = private_copy(value.condition, memo)
            unknown.condition = condition if isinstance(condition, Unknown) else None
        if value.asks is not None:
            kind, about, constant = value.asks
            copied = private_copy(about, memo)
            unknown.asks = (kind, copied if isinstance(copied, (Unknown, Number)) else about, constant)
        if value.answers is not None:
            unknown.answers = {key: private_copy(item, memo) for key, item in value.answers.items()}
        return unknown
    if isinstance(value, Stream):
        # What is left of an iterator when it is shared is nobody's to say.
        return memo.setdefault(id(value), Unknown("an iterator of an imported module"))
    if isinstance(value, Opaque):
        memo[id(value)] = opaque = object.__new__(type(value))
        opaque.__dict__.update(value.__dict__)
        opaque.attributes = {key: private_copy(item, memo) for key, item in value.attributes.items()}
        return opaque
    if isinstance(value, Partial):
        args = [private_copy(item, memo) for item in value.args]
        kwargs = {key: private_copy(item, memo) for key, item in value.kwargs.items()}
        return memo.setdefault(
            id(value), Partial(private_copy(value.function, memo), args, kwargs, value.site)
        )
    if isinstance(value, Method):
        return memo.setdefault(id(value), Method(value.function, private_copy(value.receiver, memo)))
    if isinstance(value, Bound):
        return memo.setdefault(id(value), Bound(private_copy(value.receiver, memo), value.name))
    if isinstance(value, Negated):
        return memo.setdefault(id(value), Negated(private_copy(value.value, memo)))
    return value


def _alike(value: Some, kind: type[Some]) -> Some:
    copy = object.__new__(kind)
    for base in kind.__mro__:
        for name in getattr(base, "__slots__", ()):
            setattr(copy, name, getattr(value, name))
    return copy


# -- what was changed ------------------------------------------------------------------------------------------------


def states_of(value: Value, found: dict[int, State]) -> None:
    """What everything that can be changed and is reached from a value holds now."""
    todo: list[Any] = [value]
    while todo:
        one = todo.pop()
        if not isinstance(one, CHANGEABLE) or id(one) in found:
            continue
        if isinstance(one, Opaque):
            fields = {"attributes": dict(one.attributes)}
        else:
            names = [name for base in type(one).__mro__ for name in getattr(base, "__slots__", ())]
            fields = {name: _content(getattr(one, name)) for name in names}
        found[id(one)] = (one, fields)
        for held in fields.values():
            if isinstance(held, list):
                todo += held
            elif isinstance(held, dict):
                todo += held.values()
            else:
                todo.append(held)


def _content(held: Any) -> Any:
    if type(held) is dict:
        return dict(held)
    return list(held) if type(held) is list else held


def is_as_before(state: State) -> bool:
    """Whether an object still holds what it held."""
    one, fields = state
    return all(_is_same(getattr(one, name), held) for name, held in fields.items())


def _is_same(now: Any, before: Any) -> bool:
    if type(before) is list:
        return type(now) is list and len(now) == len(before) and all(a is b for a, b in zip(now, before))
    if type(before) is dict:
        return (
            type(now) is dict
            and len(now) == len(before)
            and all(key in now and now[key] is value for key, value in before.items())
        )
    return now is before or (isinstance(now, (bool, int, str, frozenset, tuple)) and bool(now == before))


def restore(state: State) -> None:
    """Make an object hold what it held."""
    one, fields = state
    for name, held in fields.items():
        setattr(one, name, _content(held))


def enclose(value: Value, module: PythonModule, seen: set[int]) -> None:
    """Mark what functions and classes of a module hold as shared: it is copied when it is read."""
    todo: list[Any] = [value]
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        if isinstance(one, Function):
            seen.add(id(one))
            scope = one.scope
            while scope.outer is not None:
                if type(scope.names) is dict:
                    todo += scope.names.values()
                    scope.names = EnclosedNames(module, scope.names)
                scope = scope.outer
            todo += [*one.defaults, *one.keyword_defaults.values(), one.setter, one.deleter, one.decorates]
            todo += [part for pair in one.overloads or () for part in pair]
            todo += [wrapper for wrapper, _ in one.wrappers]
            todo += (one.attributes or {}).values()
        elif isinstance(one, ClassValue):
            seen.add(id(one))
            if type(one.namespace) is dict:
                todo += one.namespace.values()
                one.namespace = EnclosedNames(module, one.namespace)
        elif isinstance(one, Seq):
            seen.add(id(one))
            todo += one.items
        elif isinstance(one, Mapping):
            seen.add(id(one))
            todo += [*one.items.values(), *one.rest]
        elif isinstance(one, Instance):
            seen.add(id(one))
            todo += [one.cls, one.held, *one.attributes.values()]
        elif isinstance(one, Partial):
            seen.add(id(one))
            todo += [one.function, *one.args, *one.kwargs.values()]
        elif isinstance(one, (Method, Bound)):
            seen.add(id(one))
            todo += [one.receiver, getattr(one, "function", None)]
