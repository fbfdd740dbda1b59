"""Keyword arguments of which not all are known."""

from __future__ import annotations

from typing import Any


class OpenKeywords(dict[str, Any]):
    """The arguments of a call into which a dict was spread of which not all is known."""

    spread: Any = None


def all_given(args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
    """What a call is given: also the dict of which not all is known that is spread into it."""
    spread = [kwargs.spread] if isinstance(kwargs, OpenKeywords) and kwargs.spread is not None else []
    return [*args, *kwargs.values(), *spread]
