"""Replace the content of a file at once: readers see the old content or the new one, never a part.

Encoding, byte order mark and permissions stay what they were; a symbolic link stays a link.
"""

from __future__ import annotations

import contextlib
import os
import tempfile

from gradsight.session.reading import declared_encoding

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Changed(Exception):
    """Somebody else has written the file since it was read."""


def encode(text: str, old: bytes) -> bytes:
    """A text as bytes, in the way that the old content was written."""
    if old.startswith(_BYTE_ORDER_MARK):
        return _BYTE_ORDER_MARK + text.encode("utf-8")
    return text.encode(declared_encoding(old))


def replace_file(path: str, old: bytes, new: bytes) -> None:
    """Write `new` where `old` was.  Raises `Changed` when it is there no longer, OSError when it cannot be written."""
    place = os.path.realpath(path)
    status = os.stat(place)
    if not os.access(place, os.W_OK):
        raise PermissionError(13, "permission denied")
    handle, name = tempfile.mkstemp(dir=os.path.dirname(place), prefix=f".{os.path.basename(place)}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(new)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(OSError, AttributeError):
            os.chown(name, status.st_uid, status.st_gid)
        os.chmod(name, status.st_mode & 0o7777)
        with open(place, "rb") as file:
            if file.read() != old:
                raise Changed(path)
        os.replace(name, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
