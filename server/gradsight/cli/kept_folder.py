"""What makes kept results trustworthy: they lie in a folder that is ours, and carry our seal.

Whoever wrote the project may have put anything where results are kept.  So a folder that is a link, belongs to somebody
else or holds other things is not used, and what is read from one counts only with its *seal*: a checksum with a key that
nobody but this user can read.  The key is made on first use in the user's own cache folder; without one nothing is kept.
A server that keeps results between its machines names a key of its own by a variable.
"""

from __future__ import annotations

import os
import stat

from gradsight.ops.user_folder import cache_folder as user_folder
from gradsight.session import disk

try:
    # The whole of hashlib takes longer to import than a check to be repeated.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

CACHE_FOLDER = ".gradsight_cache"
CACHE_VARIABLE = "GRADSIGHT_CACHE"
KEY_VARIABLE = "GRADSIGHT_CACHE_KEY"
KEY_FILE = "key"
KEY_SIZE = 32
SHORTEST_CHOSEN_KEY = 16
MOST_BYTES = 500_000_000
_ABOUT = "README"
_LABELS = {
    _ABOUT: "Results of `gradsight check`, kept by content.  Can be deleted at any time.\n",
    ".gitignore": "*\n",
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n",
}


def refusal(folder: str) -> str:
    """Why results are not kept in a folder, in words that follow its name; empty where they may be."""
    try:
        status = os.lstat(folder)
        if stat.S_ISLNK(status.st_mode):
            return "is a link"
        if not stat.S_ISDIR(status.st_mode):
            return "is not a folder"
        if not is_own(status):
            return "belongs to another user"
        names = os.listdir(folder)
    except FileNotFoundError:
        return ""
    except OSError as problem:
        return f"cannot be read: {(problem.strerror or 'no reason given').lower()}"
    if _ABOUT not in names and any(not name.startswith(".") for name in names):
        return "holds other things"
    return ""


def is_own(status: os.stat_result) -> bool:
    """Whether a file belongs to the user of this process; where files have no owners, all do."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def prepare(folder: str) -> None:
    """Make a folder for results, say in it what it is, and remove what killed runs left.  Raises OSError."""
    from gradsight.cli.writing import remove_strays, write_whole

    os.makedirs(folder, exist_ok=True)
    reason = refusal(folder)
    if reason:
        raise OSError(reason)
    remove_strays(folder)
    for name, content in _LABELS.items():
        label = os.path.join(folder, name)
        if not os.path.lexists(label):
            write_whole(label, content.encode())


def read_sealed(path: str) -> bytes | None:
    """What was kept in a file; None when it is not there, or was not written by this user.  Raises OSError."""
    key = _key()
    if key is None:
        return None
    mark, separator, kept = disk.content(path, MOST_BYTES).partition(b"\0")
    return kept if separator and mark == _seal(key, kept) else None


def write_sealed(path: str, content: bytes) -> None:
    """Keep something in a file; nothing is done without a key.  Raises OSError."""
    from gradsight.cli.writing import write_whole

    key = _key() or _made_key()
    if key is not None:
        write_whole(path, _seal(key, content) + b"\0" + content)


def name_of(content: str) -> str:
    """A short name for a text, equal for equal texts."""
    return blake2b(content.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def has_key() -> bool:
    """Whether something can be kept; the key is made if there is none."""
    return (_key() or _made_key()) is not None


def _seal(key: bytes, content: bytes) -> bytes:
    return blake2b(content, key=key, digest_size=32).hexdigest().encode()


def _key() -> bytes | None:
    chosen = os.environ.get(KEY_VARIABLE)
    if chosen is not None:
        secret = chosen.encode("utf-8", "surrogateescape")
        return blake2b(secret, digest_size=KEY_SIZE).digest() if len(secret) >= SHORTEST_CHOSEN_KEY else None
    path = os.path.join(user_folder(), KEY_FILE)
    try:
        status = os.lstat(path)
        is_private = os.name == "nt" or not stat.S_IMODE(status.st_mode) & 0o077
        if not (stat.S_ISREG(status.st_mode) and is_own(status) and is_private):
            return None
        key = disk.content(path, KEY_SIZE)
    except OSError:
        return None
    return key if len(key) == KEY_SIZE else None


def _made_key() -> bytes | None:
    """A new key, or the one that another process has made at the same time."""
    if os.environ.get(KEY_VARIABLE) is not None:
        return None
    folder = user_folder()
    path = os.path.join(folder, KEY_FILE)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with open(handle, "wb", buffering=0) as file:
            file.write(os.urandom(KEY_SIZE))
    except OSError:
        pass
    return _key()
