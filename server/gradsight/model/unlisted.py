"""Whose the members are that a list of unknown length does not list."""

from __future__ import annotations

from collections.abc import Iterable

from gradsight.model.values import Module, Seq, Stream, Value

MOST_LISTED = 60
"""A longer list may have lost members when it was gone through."""


def owners_of_rest(sources: Iterable[Value]) -> tuple[Module, ...]:
    """The modules that everything belongs to which these lists do not list; empty where that is not known.

    Of `net.parameters()` the rest is the net's own, however long its lists of layers are.
    """
    found: list[Module] = []
    for source in sources:
        if not isinstance(source, (Seq, Stream)):
            return ()
        is_short = isinstance(source, Seq) and len(source.items) <= MOST_LISTED and not source.partial
        if not source.owners and not (source.exact and is_short):
            return ()
        found += [owner for owner in source.owners if not any(owner is other for other in found)]
    return tuple(found)
