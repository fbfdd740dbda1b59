"""Numbers and arrays that remember the tensors they came from, so that a round trip through Python is seen.

`item()` hands out a float that keeps its origin through arithmetic; other numbers are recognised by their exact value
when they come back.  Values with few significant bits (0, 1, 0.5) are too common to prove anything and are left out.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Any

Origin = tuple[int, int]
_KEPT_VALUES = 50_000
_LONGEST_LIST = 20_000


class Origins:
    """Where numbers come from: (leaves, events) by exact value."""

    def __init__(self) -> None:
        self._by_value: OrderedDict[float, Origin] = OrderedDict()

    def remember(self, value: float, origin: Origin) -> None:
        """This number was computed from these leaves."""
        if _is_common(value):
            return
        self._by_value[value] = origin
        if len(self._by_value) > _KEPT_VALUES:
            self._by_value.popitem(last=False)

    def of(self, value: Any) -> Origin:
        """The origin of a number, an array, or of everything in a nested list."""
        kind = type(value)
        if kind is float:
            return self._by_value.get(value, (0, 0)) if self._by_value else (0, 0)
        if kind is TracedFloat:
            traced: Origin = value.origin
            return traced
        if isinstance(value, (list, tuple)):
            leaves = events = 0
            for item in value[:_LONGEST_LIST]:
                more_leaves, more_events = self.of(item)
                leaves |= more_leaves
                events |= more_events
            return leaves, events
        origin = getattr(value, "gradsight_origin", None)
        if isinstance(origin, tuple):
            return origin
        if isinstance(value, float):
            return self._by_value.get(float(value), (0, 0))
        return 0, 0

    def __bool__(self) -> bool:
        return bool(self._by_value)

    def traced(self, value: Any, origin: Origin) -> Any:
        """The same number or array, with its origin remembered."""
        if type(value) is float:
            self.remember(value, origin)
            return TracedFloat.make(value, origin, self)
        if isinstance(value, list):
            self._remember_all(value, origin)
            return value
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray):
            return traced_array(value, origin, self)
        return value

    def _remember_all(self, values: list[Any], origin: Origin) -> None:
        for item in values[:_LONGEST_LIST]:
            if type(item) is float:
                self.remember(item, origin)
            elif isinstance(item, list):
                self._remember_all(item, origin)


def _is_common(value: float) -> bool:
    return value != value or abs(value) == float("inf") or (value * 4096.0).is_integer()


class TracedFloat(float):
    """A float with an origin; it pickles, copies and prints as a plain float."""

    origin: Origin
    origins: Origins

    @classmethod
    def make(cls, value: float, origin: Origin, origins: Origins) -> TracedFloat:
        traced = cls(value)
        traced.origin = origin
        traced.origins = origins
        return traced

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (float, (float(self),))

    def __deepcopy__(self, memo: Any) -> float:
        return float(self)

    def __copy__(self) -> float:
        return float(self)


def _lifted(name: str) -> Any:
    plain = getattr(float, name)

    def method(self: TracedFloat, *others: Any) -> Any:
        result = plain(self, *others)
        if type(result) is not float:
            return result
        leaves, events = self.origin
        for other in others:
            if type(other) is TracedFloat:
                leaves |= other.origin[0]
                events |= other.origin[1]
        self.origins.remember(result, (leaves, events))
        return TracedFloat.make(result, (leaves, events), self.origins)

    method.__name__ = name
    return method


for _name in (
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "pow",
    "rpow",
    "neg",
    "pos",
    "abs",
):
    setattr(TracedFloat, f"__{_name}__", _lifted(f"__{_name}__"))
# Messages of Python name the type, and the user knows it as a float.
TracedFloat.__name__ = TracedFloat.__qualname__ = "float"
TracedFloat.__round__ = _lifted("__round__")  # type: ignore[method-assign]


_ARRAY_CLASS: list[Any] = []


def traced_array(array: Any, origin: Origin, origins: Origins) -> Any:
    """A view of the array that keeps its origin through ufuncs, reductions and slicing."""
    kind = _array_class()
    if type(array) not in (sys.modules["numpy"].ndarray, kind) or array.dtype.kind not in "fc":
        return array
    traced = array.view(kind)
    traced.gradsight_origin = origin
    traced.gradsight_origins = origins
    return traced


def _array_class() -> Any:
    if _ARRAY_CLASS:
        return _ARRAY_CLASS[0]
    numpy: Any = sys.modules["numpy"]

    class TracedArray(numpy.ndarray):
        gradsight_origin: Origin = (0, 0)
        gradsight_origins: Any = None

        def __array_finalize__(self, source: Any) -> None:
            self.gradsight_origin = getattr(source, "gradsight_origin", (0, 0))
            self.gradsight_origins = getattr(source, "gradsight_origins", None)

        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
            out = options.get("out")
            if out:
                options["out"] = tuple(_plain(item) for item in out)
            result = getattr(ufunc, method)(*[_plain(item) for item in inputs], **options)
            if out and len(out) == 1:
                return out[0]
            return _marked(result, inputs)

        def __array_function__(self, func: Any, types: Any, args: Any, options: Any) -> Any:
            plain_args = [_plain_deep(item) for item in args]
            plain_options = {key: _plain_deep(item) for key, item in options.items()}
            result = func(*plain_args, **plain_options)
            return _marked(result, [*args, *options.values()])

        def __reduce__(self) -> Any:
            return numpy.asarray(self).view(numpy.ndarray).__reduce__()

        def __reduce_ex__(self, protocol: Any) -> Any:
            return numpy.asarray(self).view(numpy.ndarray).__reduce_ex__(protocol)

        def __deepcopy__(self, memo: Any) -> Any:
            return numpy.array(self.view(numpy.ndarray), copy=True)

    def _plain(item: Any) -> Any:
        return item.view(numpy.ndarray) if isinstance(item, TracedArray) else item

    def _plain_deep(item: Any) -> Any:
        if isinstance(item, (list, tuple)) and not hasattr(item, "_fields"):
            return type(item)(_plain_deep(part) for part in item)
        return _plain(item)

    def _sources(items: Any) -> list[Any]:
        found = []
        for item in items:
            if isinstance(item, TracedArray):
                found.append(item)
            elif isinstance(item, (list, tuple)):
                found.extend(_sources(item))
        return found

    def _marked(result: Any, inputs: Any) -> Any:
        sources = _sources(inputs)
        leaves = events = 0
        for source in sources:
            leaves |= source.gradsight_origin[0]
            events |= source.gradsight_origin[1]
        origins = next(
            (source.gradsight_origins for source in sources if source.gradsight_origins is not None), None
        )
        if not leaves or origins is None:
            return result
        if isinstance(result, numpy.ndarray):
            return traced_array(result, (leaves, events), origins)
        if isinstance(result, numpy.floating):
            origins.remember(float(result), (leaves, events))
        return result

    _ARRAY_CLASS.append(TracedArray)
    return TracedArray
