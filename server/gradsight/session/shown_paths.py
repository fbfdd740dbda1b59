"""Paths as a person reads them."""

from __future__ import annotations

import os

from gradsight.model.showing import visible


def shown_path(path: str) -> str:
    """Relative when it lies below the working folder, which may be gone; nothing in it acts on a terminal."""
    try:
        here = os.getcwd()
    except OSError:
        return visible(path)
    return visible(os.path.relpath(path, here) if path.startswith(here.rstrip(os.sep) + os.sep) else path)
