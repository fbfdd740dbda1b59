"""From bytes to source text, the way Python itself reads a file: byte order mark, encoding declaration, UTF-8 otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session import disk

_DECLARATION = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:#.*)?$")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
OUTPUT_SHARE = 25
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a file gave no text, in words that follow its name and a colon.

    `beginning` is what was read of a file that is too large.
    """

    reason: str
    beginning: bytes = b""


def read_bytes(path: str, most: int = Settings().most_bytes) -> bytes | Unreadable:
    """The content of a file, or why there is none.  Of a notebook most is output, which is not analysed."""
    try:
        return disk.read(path, most * OUTPUT_SHARE if path.endswith(".ipynb") else most)
    except disk.TooLarge as problem:
        return Unreadable(too_large(most), problem.beginning)
    except OSError as problem:
        return Unreadable((problem.strerror or type(problem).__name__).lower())


def too_large(most: int) -> str:
    """Why a text of more than so many bytes is not analysed."""
    return f"is larger than {most / 1e6:g} MB and is not checked (maxMegabytes of [tool.gradsight])"


def decode(data: bytes) -> str | Unreadable:
    """The text of a Python file.  Lines keep their ends; a byte order mark is not part of the text."""
    marked = data.startswith(_BYTE_ORDER_MARK)
    if marked:
        data = data[len(_BYTE_ORDER_MARK) :]
    encoding = "utf-8" if marked else declared_encoding(data)
    try:
        return data.decode(encoding)
    except LookupError:
        return Unreadable(f"declares the encoding {encoding}, which Python does not know")
    except UnicodeDecodeError as problem:
        if b"\0" in data:
            return Unreadable("is not a text file")
        return Unreadable(f"is not {encoding} text (byte {problem.start})")
    except UnicodeError as problem:
        return Unreadable(f"is not {encoding} text ({problem})")


def declared_encoding(data: bytes) -> str:
    """The encoding that a comment on the first or second line declares; UTF-8 without one."""
    for line in data.split(b"\n", 2)[:2]:
        declaration = _DECLARATION.match(line)
        if declaration is not None:
            return declaration.group(1).decode("ascii", "replace")
        if not _BLANK.match(line.rstrip(b"\r")):
            break
    return "utf-8"


def split_lines(text: str) -> list[str]:
    """Lines as Python counts them: a form feed or a Unicode separator does not end one."""
    return _LINE_END.split(text)


def reader(most: int = Settings().most_bytes) -> Callable[[str], Source | None]:
    """A function that reads a workspace file once and remembers what it found; None where there is nothing to read."""
    known: dict[str, Source | None] = {}

    def read(path: str) -> Source | None:
        if path not in known:
            data = read_bytes(path, most) if disk.is_file(path) else Unreadable("not a file")
            text = decode(data) if isinstance(data, bytes) else data
            known[path] = Source(path, text) if isinstance(text, str) else None
        return known[path]

    return read
