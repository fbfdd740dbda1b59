"""Files are written whole: readers see the old content or the new one, never a part, whenever a run is killed.

The new content is written beside its place and then takes it.  What is killed in between leaves a *stray*, whose name
holds the number of its process: the next run removes those whose process is gone.
Encoding, byte order mark, owner, permissions and attributes of a repaired file stay what they were; a symbolic link
stays a link.  A file with several names, or one whose owner cannot be given to a new file, is written where it is.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator

from gradsight.session import disk
from gradsight.session.reading import declared_encoding

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
STRAY_SUFFIX = ".gradsight-new"
_STRAY = re.compile(rf"\..*\.(\d+)-\w+{re.escape(STRAY_SUFFIX)}")


class Changed(Exception):
    """Somebody else has written the file since it was read."""


def encode(text: str, old: bytes) -> bytes:
    """A text as bytes, in the way that the old content was written."""
    if old.startswith(_BYTE_ORDER_MARK):
        return _BYTE_ORDER_MARK + text.encode("utf-8")
    return text.encode(declared_encoding(old))


def write_whole(path: str, content: bytes, mode: int = 0o600) -> None:
    """Put a file at a path, or in the place of the one that is there, whose permissions stay.  Raises OSError.

    A link at the path is replaced by the file; nothing is written through it.
    """
    with _beside(path, content) as name:
        if os.path.isfile(path) and not os.path.islink(path):
            _is_made_alike(name, path, os.stat(path))
        else:
            os.chmod(name, mode)
        os.replace(name, path)


def usual_mode() -> int:
    """The permissions that a new file of the user's gets."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def replace_file(path: str, old: bytes, new: bytes) -> None:
    """Write `new` where `old` was.  Raises `Changed` when it is there no longer, OSError when it cannot be written."""
    place = os.path.realpath(path)
    status = os.stat(place)
    if not os.access(place, os.W_OK):
        raise PermissionError(13, "permission denied")
    with _beside(place, new) as name:
        is_alike = status.st_nlink == 1 and _is_made_alike(name, place, status)
        if disk.content(place, len(old) + 1) != old:
            raise Changed(path)
        if is_alike:
            os.replace(name, place)
        else:
            _overwrite(place, new)


def remove_strays(folder: str) -> None:
    """Remove what killed runs left in a folder."""
    with contextlib.suppress(OSError), os.scandir(folder) as listing:
        for entry in listing:
            found = _STRAY.fullmatch(entry.name)
            if found and not _is_running(int(found.group(1))) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


@contextlib.contextmanager
def _beside(path: str, content: bytes) -> Iterator[str]:
    """A new file next to a path, complete on disk; removed if it is still there in the end."""
    folder, base = os.path.split(path)
    handle, name = tempfile.mkstemp(STRAY_SUFFIX, f".{base[:100]}.{os.getpid()}-", folder or ".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield name
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)


def _is_made_alike(name: str, place: str, status: os.stat_result) -> bool:
    """Give a new file the owner, permissions and attributes of another; False where that is not allowed."""
    try:
        if hasattr(os, "chown"):
            os.chown(name, status.st_uid, status.st_gid)
        # To change the owner takes away special permissions: they come last.
        if hasattr(os, "listxattr"):
            for attribute in os.listxattr(place):
                os.setxattr(name, attribute, os.getxattr(place, attribute))
        os.chmod(name, stat.S_IMODE(status.st_mode))
    except OSError:
        return False
    return True


def _overwrite(place: str, content: bytes) -> None:
    """Write into a file as it is, with one call, so that a kill can hardly come in between."""
    handle = os.open(place, os.O_WRONLY | getattr(os, "O_BINARY", 0))
    with open(handle, "wb", buffering=0) as file:
        file.write(content)
        file.truncate()
        os.fsync(file.fileno())


def _is_running(process: int) -> bool:
    if os.name == "nt":
        # There a signal would end the process that is asked about.
        return process == os.getpid()
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
