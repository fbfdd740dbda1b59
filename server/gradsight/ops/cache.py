"""Tables refreshed from the user's own torch, kept per torch version in the user's cache folder."""

from __future__ import annotations

import os

from gradsight.ops.table import Table, table_of
from gradsight.ops.user_folder import cache_folder


def table_path(torch_version: str) -> str:
    """Where the table of a torch version is kept; the build suffix (`+cpu`) makes no difference."""
    release = torch_version.split("+")[0]
    plain = "".join(sign if sign.isascii() and (sign.isalnum() or sign == ".") else "_" for sign in release)
    return os.path.join(cache_folder(), f"facts-{plain}.txt")


def has_tables() -> bool:
    """Whether any table was refreshed here; the question is asked at every start and must cost nothing."""
    try:
        return any(name.startswith("facts-") for name in os.listdir(cache_folder()))
    except OSError:
        return False


def measured_facts(python: str = "") -> str:
    """The file with what was measured on the torch of an interpreter; empty where nothing was.

    Without an interpreter that of the active environment is meant.
    """
    if not has_tables():
        return ""
    from gradsight.ops.environment import default_python, installed_torch

    version = installed_torch(python or default_python())
    file = table_path(version) if version else ""
    return file if os.path.exists(file) else ""


def facts_mark(file: str) -> str:
    """Tells the facts in one file from others: empty for the shipped ones, else the file with its size and time."""
    if not file:
        return ""
    try:
        status = os.stat(file)
    except OSError:
        return ""
    return f"{file}:{status.st_size}:{status.st_mtime_ns}"


def load(torch_version: str | None = None) -> Table:
    """The table for a torch version, by default that of the active environment: measured if the user did so, else shipped."""
    return table_of(table_path(torch_version) if torch_version else measured_facts())


def make_folder() -> None:
    """Make sure that a table can be kept.  Raises OSError."""
    import tempfile

    folder = cache_folder()
    os.makedirs(folder, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix="facts-", suffix=".new")
    os.close(handle)
    os.unlink(temporary)


def store(torch_version: str, text: str) -> str:
    """Keep a table; the old file survives until the new one is complete.  Raises OSError."""
    import tempfile

    path = table_path(torch_version)
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix="facts-", suffix=".new")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    return path
