"""What the ranks of a distributed program have to say, brought together through torch's own store: no service of ours.

The store is the one that the ranks met in, on whatever node it lies.  Every rank leaves its words there; rank 0 reads them.
"""

from __future__ import annotations

import datetime
import json
import os
from typing import Any

import torch.distributed as distributed

PREFIX = "gradsight/report"


def rank_and_size() -> tuple[int, int]:
    """This process among its peers; (0, 1) outside of a distributed program."""
    if is_met():
        return distributed.get_rank(), distributed.get_world_size()
    try:
        return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    except ValueError:
        return 0, 1


def is_met() -> bool:
    """Whether this process is in a group of processes now."""
    return bool(distributed.is_available() and distributed.is_initialized())


def gather(words: dict[str, Any], number: int, seconds: float) -> dict[int, dict[str, Any]] | None:
    """On rank 0 the words of every rank that spoke in time; elsewhere, or without a store, nothing.

    `number` tells one gathering from the next: every rank gathers as often as the others.
    """
    store = _store()
    if store is None:
        return None
    rank, size = rank_and_size()
    store.set(f"{PREFIX}/{number}/{rank}", json.dumps(words))
    if rank:
        # The store may lie in rank 0: it must not go before the words are read.
        _await(store, f"{PREFIX}/{number}/read", seconds)
        return None
    found = {}
    for other in range(size):
        if _await(store, f"{PREFIX}/{number}/{other}", seconds):
            found[other] = json.loads(store.get(f"{PREFIX}/{number}/{other}"))
    store.set(f"{PREFIX}/{number}/read", "1")
    return found


def _store() -> Any:
    if not is_met():
        return None
    try:
        return distributed.distributed_c10d._get_default_store()
    except (AttributeError, RuntimeError):
        return None


def _await(store: Any, key: str, seconds: float) -> bool:
    try:
        store.wait([key], datetime.timedelta(seconds=seconds))
    except (RuntimeError, ValueError):
        return False
    return True
