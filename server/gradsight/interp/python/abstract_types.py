"""Types of plain values, and classes that only say what an object can do: `isinstance({}, Mapping)` is true though nothing derives from it."""

from __future__ import annotations

from gradsight.model.tensors import Tensor
from gradsight.model.values import (
    MISSING,
    ClassValue,
    External,
    Function,
    Mapping,
    Method,
    Seq,
    Unknown,
    Value,
    is_constant,
)

MODULES = frozenset({"collections.abc", "collections", "typing", "numbers"})
MANY = frozenset({"Iterable", "Sized", "Container", "Collection", "Reversible"})
OF_KIND = {
    "dict": MANY | {"Mapping", "MutableMapping"},
    "list": MANY | {"Sequence", "MutableSequence"},
    "tuple": MANY | {"Sequence", "Hashable"},
    "set": (MANY - {"Reversible"}) | {"Set", "MutableSet", "AbstractSet"},
    "text": MANY | {"Sequence", "Hashable", "ByteString"},
    "whole": frozenset({"Hashable", "Number", "Complex", "Real", "Rational", "Integral"}),
    "real": frozenset({"Hashable", "Number", "Complex", "Real"}),
    "function": frozenset({"Callable", "Hashable"}),
    "tensor": MANY | {"Hashable"},
    "other": frozenset({"Hashable"}),
}
KNOWN = frozenset().union(*OF_KIND.values())


def answers(value: Value, path: str) -> Value:
    """Whether a value is one of such a class; MISSING where the class is another, or nothing is known of the value."""
    module, _, name = path.rpartition(".")
    if module not in MODULES or name not in KNOWN:
        return MISSING
    kind = kind_of(value)
    return name in OF_KIND[kind] if kind else MISSING


def plain_type(value: Value) -> Value:
    """`type(value)` of what is no object of a class that was executed: that of a dict may be one made of it, and is not known."""
    if is_constant(value):
        return External(f"builtins.{type(value).__name__}")
    is_plain = isinstance(value, Seq) and value.kind in ("list", "tuple", "set")
    if isinstance(value, Seq) and is_plain and not value.once and value.fields is None:
        return External(f"builtins.{value.kind}")
    return Unknown("type of a value")


def kind_of(value: Value) -> str:
    if isinstance(value, Mapping):
        return "dict"
    if isinstance(value, Seq):
        return value.kind if value.kind in OF_KIND else ""
    if isinstance(value, (Function, Method, ClassValue)):
        return "function"
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, (str, bytes)):
        return "text"
    if isinstance(value, int):
        return "whole"
    if isinstance(value, float):
        return "real"
    return "other" if is_constant(value) else ""
