"""What a list does not list: whose its other members are, whether there are any, and what follows from all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gradsight.model.values import Module, Seq, Stream, Unknown, Value

MOST_LISTED = 60
"""A longer list may have lost members when it was gone through."""

_WIDE = re.compile(r"%[^a-zA-Z]*(\*|\d{4})")
"""A place in a text that may be filled in with very much, or as wide as a value says."""


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


def is_whole(items: Seq) -> bool:
    """Whether all items are listed; those of a list that a loop fills are not, if the loop was left early."""
    return items.exact and not items.partial


def filled_in(pattern: str, given: Seq) -> Value:
    """`"%s.%s" % (prefix, name)`."""
    values = tuple(given.items)
    if _WIDE.search(pattern):
        return Unknown("text with something filled in", "text")
    if given.kind == "tuple" and is_whole(given) and all(isinstance(one, (str, int)) for one in values):
        try:
            return pattern % values
        except (TypeError, ValueError):
            pass
    return Unknown("text with something filled in", "text")
