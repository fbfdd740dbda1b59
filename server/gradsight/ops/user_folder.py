"""Where GradSight keeps what is the user's own and not the project's: refreshed facts, the key of kept results."""

from __future__ import annotations

import os
import sys


def cache_folder() -> str:
    """`GRADSIGHT_CACHE_DIR`, or the platform's cache folder."""
    chosen = os.environ.get("GRADSIGHT_CACHE_DIR")
    if chosen:
        return chosen
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(base, "gradsight")
