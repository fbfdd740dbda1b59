"""Keyword arguments of which not all are known."""

from __future__ import annotations

from typing import Any


class OpenKeywords(dict[str, Any]):
    """The arguments of a call into which a dict was spread of which not all is known."""

    spread: Any = None
