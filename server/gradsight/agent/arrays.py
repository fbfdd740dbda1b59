"""Arrays and numbers of NumPy that remember the tensors they came from: through ufuncs, methods, indexing and functions.

Calls of NumPy and its relatives in the user's code go through `OutsideCalls`, which also sees when a function writes to
memory that a tensor shares (`np.clip(a, 0, 1, out=a)`, `np.random.shuffle(a)`): torch gets no word of it.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from gradsight.agent.faults import Ledger, quietly
from gradsight.agent.origins import Origin, Origins, TracedFloat

# Functions whose result has the form of their argument and none of its values.
_ONLY_FORM = frozenset(
    ("zeros_like", "ones_like", "empty_like", "full_like", "shape", "size", "ndim", "seed")
)
_METHODS = (
    "mean", "sum", "std", "var", "prod", "max", "min", "ptp", "dot", "trace", "cumsum", "cumprod", "clip", "round",
    "__getitem__", "__matmul__", "__rmatmul__",
)  # fmt: skip
_OPERATORS = (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "pow",
    "rpow", "neg", "pos", "abs", "round",
)  # fmt: skip
_LARGEST_WATCHED = 1 << 26


class _Kinds(NamedTuple):
    """The traced classes: one for arrays, and one for each kind of number, there and back."""

    array: Any
    scalars: dict[Any, Any]
    plain: dict[Any, Any]


_KINDS: list[_Kinds] = []


def traced_array(value: Any, origin: Origin, origins: Origins) -> Any:
    """The same array or number, with its origin; what is of a class of its own stays what it is."""
    kinds = _kinds()
    kind = type(value)
    if kind in kinds.scalars:
        origins.remember(float(value), origin)
        traced = kinds.scalars[kind](value)
    elif kind in (sys.modules["numpy"].ndarray, kinds.array) and value.dtype.kind in "fc":
        traced = value.view(kinds.array)
    else:
        return value
    traced.gradsight_origin = origin
    traced.gradsight_origins = origins
    return traced


class OutsideCalls:
    """Stands for the calls of functions that compute outside of torch, in the user's code."""

    def __init__(
        self,
        ledger: Ledger,
        origins: Origins,
        leaving: Callable[[Callable[[], Any]], tuple[Any, Origin]],
        is_shared: Callable[[Any], bool],
        written: Callable[[Any], None],
    ) -> None:
        self.ledger = ledger
        self.origins = origins
        self.leaving = leaving
        self.is_shared = is_shared
        self.written = written

    def __call__(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        watched = [(item, _sum_of(item)) for item in given if self._is_watched(item)]
        if any(hasattr(item, "grad_fn") for item in _flat(given)):
            result, origin = self.leaving(lambda: function(*args, **kwargs))
        else:
            result, origin = function(*args, **kwargs), (0, 0)
        for item, before in watched:
            if _sum_of(item) != before:
                self.written(item)
        if not self.origins:
            return result
        marked = self._marked(function, result, given, origin)
        return result if marked is None else marked

    @quietly
    def _marked(self, function: Any, result: Any, given: tuple[Any, ...], left: Origin) -> Any:
        leaves, events = self.origins.carried_by(given)
        return _marked(function, result, (leaves | left[0], events | left[1]), self.origins)

    def _is_watched(self, item: Any) -> bool:
        return (
            type(item).__module__ != "builtins"
            and hasattr(item, "__array_interface__")
            and not hasattr(item, "grad_fn")
            and item.nbytes <= _LARGEST_WATCHED
            and self.is_shared(item)
        )


def _flat(given: tuple[Any, ...]) -> list[Any]:
    found: list[Any] = []
    for item in given:
        found.extend(item[:1000] if isinstance(item, (list, tuple)) else (item,))
    return found


def _sum_of(array: Any) -> int:
    return zlib.crc32(sys.modules["numpy"].ascontiguousarray(array).view("u1"))


def _marked(function: Any, result: Any, origin: Origin, origins: Origins) -> Any:
    """The result of a function of NumPy with the origin of its arguments."""
    if not origin[0] or getattr(function, "__name__", "") in _ONLY_FORM:
        return result
    if isinstance(result, (tuple, list)) and not hasattr(result, "_fields"):
        return type(result)(traced_array(item, origin, origins) for item in result)
    return origins.traced(result, origin) if type(result) is float else traced_array(result, origin, origins)


def _kinds() -> _Kinds:
    if not _KINDS:
        numpy: Any = sys.modules["numpy"]
        array = _array_class(numpy)
        scalars = {kind: _scalar_class(kind) for kind in (numpy.float16, numpy.float32, numpy.float64)}
        _KINDS.append(_Kinds(array, scalars, {traced: kind for kind, traced in scalars.items()}))
    return _KINDS[0]


def _origins_in(items: Any) -> tuple[Origins | None, Origin]:
    """The book that the traced values among these belong to, and all their origins together."""
    for item in _flat(items):
        found = item.origins if type(item) is TracedFloat else getattr(item, "gradsight_origins", None)
        if found is not None:
            return found, found.carried_by(items)
    return None, (0, 0)


def _plain(item: Any) -> Any:
    """NumPy computes with its own classes only: ours would be asked again and again."""
    kinds = _kinds()
    if type(item) is kinds.array:
        return item.view(sys.modules["numpy"].ndarray)
    if type(item) in kinds.plain:
        return kinds.plain[type(item)](item)
    if isinstance(item, (list, tuple)) and not hasattr(item, "_fields"):
        return type(item)(_plain(part) for part in item)
    return item


def _ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    out = options.get("out")
    if out:
        options["out"] = tuple(_plain(item) for item in out)
    result = getattr(ufunc, method)(*[_plain(item) for item in inputs], **options)
    if out and len(out) == 1:
        return out[0]
    origins, origin = _origins_in(inputs)
    return _marked(ufunc, result, origin, origins) if origins is not None else result


def _array_class(numpy: Any) -> Any:
    class TracedArray(numpy.ndarray):
        gradsight_origin: Origin = (0, 0)
        gradsight_origins: Any = None
        __array_ufunc__ = _ufunc

        def __array_finalize__(self, source: Any) -> None:
            self.gradsight_origin = getattr(source, "gradsight_origin", (0, 0))
            self.gradsight_origins = getattr(source, "gradsight_origins", None)

        def __array_function__(self, func: Any, types: Any, args: Any, options: Any) -> Any:
            plain_options = {key: _plain(item) for key, item in options.items()}
            result = func(*[_plain(item) for item in args], **plain_options)
            origins, origin = _origins_in((*args, *options.values()))
            return _marked(func, result, origin, origins) if origins is not None else result

        def item(self, *where: Any) -> Any:
            return self._left(numpy.ndarray.item(self, *where))

        def tolist(self) -> Any:
            return self._left(numpy.ndarray.tolist(self))

        def __float__(self) -> float:
            number = numpy.ndarray.__float__(self)
            self._left(number)
            return float(number)

        def __iter__(self) -> Any:
            return (self[index] for index in range(len(self)))

        def _left(self, value: Any) -> Any:
            origins = self.gradsight_origins
            return value if origins is None else origins.traced(value, self.gradsight_origin)

        def __reduce__(self) -> Any:
            return numpy.asarray(self).view(numpy.ndarray).__reduce__()

        def __reduce_ex__(self, protocol: Any) -> Any:
            return numpy.asarray(self).view(numpy.ndarray).__reduce_ex__(protocol)

        def __deepcopy__(self, memo: Any) -> Any:
            return numpy.array(self.view(numpy.ndarray), copy=True)

    # NumPy 2 took some methods away.
    for name in (each for each in _METHODS if hasattr(numpy.ndarray, each)):
        setattr(TracedArray, name, _lifted(getattr(numpy.ndarray, name), name))
    TracedArray.__name__ = TracedArray.__qualname__ = "ndarray"
    TracedArray.__module__ = "numpy"
    return TracedArray


def _scalar_class(kind: Any) -> Any:
    def float_of(self: Any) -> float:
        return float(kind.__float__(self))

    def reduce(self: Any, *protocol: Any) -> Any:
        return kind, (float_of(self),)

    def copied(self: Any, *memo: Any) -> Any:
        return kind(self)

    def item(self: Any) -> Any:
        number = kind.item(self)
        origins = self.gradsight_origins
        return number if origins is None else origins.traced(number, self.gradsight_origin)

    body: dict[str, Any] = {
        "gradsight_origin": (0, 0),
        "gradsight_origins": None,
        "__array_ufunc__": _ufunc,
        "__reduce__": reduce,
        "__reduce_ex__": reduce,
        "__copy__": copied,
        "__deepcopy__": copied,
        "item": item,
        "tolist": item,
        "__module__": kind.__module__,
    }
    for name in _OPERATORS:
        if hasattr(kind, f"__{name}__"):
            body[f"__{name}__"] = _lifted(getattr(kind, f"__{name}__"), f"__{name}__")
    return type(kind.__name__, (kind,), body)


def _lifted(plain: Any, name: str) -> Any:
    """A method whose result has the origin of all that went into it."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        out = options.get("out")
        result = plain(
            _plain(self),
            *[_plain(item) for item in args],
            **{key: _plain(item) for key, item in options.items()},
        )
        if out is not None:
            return out
        if result is NotImplemented or self.gradsight_origins is None:
            return result
        origins = self.gradsight_origins
        return _marked(method, result, origins.carried_by((self, *args)), origins)

    method.__name__ = name
    return method
