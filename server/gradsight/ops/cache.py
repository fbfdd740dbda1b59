"""Tables refreshed from the user's own torch, kept per torch version in the user's cache folder."""

from __future__ import annotations

import os

from gradsight.ops.table import Table, UnreadableTable, read_table
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


def cached_table(torch_version: str) -> Table | None:
    """The refreshed table of a torch version, or None; a file that cannot be used is told once and left in place."""
    path = table_path(torch_version)
    if not os.path.exists(path):
        return None
    try:
        return read_table(path)
    except UnreadableTable as error:
        import warnings

        warnings.warn(
            f"the refreshed operator facts cannot be used, the shipped ones are: {error}", stacklevel=2
        )
        return None


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
