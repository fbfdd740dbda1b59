"""Numbers that remember the tensors they came from, so that a round trip through Python is seen.

`item()` hands out a float that keeps its origin through arithmetic; other numbers are recognised by their exact value
when they come back.  Values with few significant bits (0, 1, 0.5) are too common to prove anything and are left out.
NumPy's arrays and numbers are in `gradsight.agent.arrays`.
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
        self._is_used = False

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
            return self._by_value.get(value, (0, 0))
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
        if isinstance(value, float) or (numpy_kind(value) == "f" and getattr(value, "ndim", 1) == 0):
            return self._by_value.get(float(value), (0, 0))
        return 0, 0

    def carried_by(self, values: Any) -> Origin:
        """The origin that these values carry with them; what only looks like a known number does not count."""
        leaves = events = 0
        for item in values:
            if isinstance(item, (list, tuple)):
                origin = self.carried_by(item[:_LONGEST_LIST])
            elif type(item) is TracedFloat:
                origin = item.origin
            else:
                origin = getattr(item, "gradsight_origin", (0, 0)) if numpy_kind(item) else (0, 0)
            leaves |= origin[0]
            events |= origin[1]
        return leaves, events

    def __bool__(self) -> bool:
        return self._is_used

    def traced(self, value: Any, origin: Origin) -> Any:
        """The same number or array, with its origin remembered."""
        self._is_used = True
        if type(value) is float:
            self.remember(value, origin)
            return TracedFloat.make(value, origin, self)
        if isinstance(value, list):
            for index, item in enumerate(value[:_LONGEST_LIST]):
                if type(item) is float or isinstance(item, list):
                    value[index] = self.traced(item, origin)
            return value
        if numpy_kind(value) in ("f", "c"):
            from gradsight.agent.arrays import traced_array

            return traced_array(value, origin, self)
        return value


def numpy_kind(value: Any) -> str:
    """The letter of the kind of numbers in an array or a number of NumPy; nothing for other values."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, (numpy.ndarray, numpy.generic)):
        return ""
    return str(value.dtype.kind)


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
