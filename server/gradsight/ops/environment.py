"""Which Python environment is meant, and which torch is installed there, without starting it."""

from __future__ import annotations

import glob
import os
import re
import sys


def default_python() -> str:
    """The interpreter of the active environment, else our own."""
    active = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    if active:
        for place in (("bin", "python"), ("Scripts", "python.exe"), ("python.exe",)):
            candidate = os.path.join(active, *place)
            if os.path.exists(candidate):
                return candidate
    return sys.executable


def installed_torch(python: str) -> str | None:
    """The version of torch in an interpreter's site-packages, read from its metadata, or None."""
    prefix = os.path.dirname(os.path.dirname(os.path.abspath(python)))
    if os.path.basename(python).lower() == "python.exe" and os.path.isdir(
        os.path.join(os.path.dirname(python), "Lib")
    ):
        prefix = os.path.dirname(os.path.abspath(python))
    for folder in ("lib/python3*/site-packages", "lib64/python3*/site-packages", "Lib/site-packages"):
        for found in glob.glob(os.path.join(glob.escape(prefix), *folder.split("/"), "torch-*.dist-info")):
            version = re.match(r"torch-([^-]+)\.dist-info$", os.path.basename(found))
            if version:
                return version.group(1)
    return None
