"""Text of others as it may be shown: nothing in it acts on a terminal, a log, or a page.

File names, source lines and settings are chosen by whoever wrote the program.  What is shown of them to a person passes
through here: `visible` for terminals and logs, `as_markdown`, `sentence_markdown` and `as_code` for hovers and pages.
"""

from __future__ import annotations

import re

# Control characters, line separators, marks that turn the direction of text, and what stands for undecodable bytes.
_ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_MARKS = re.compile(r"[\\`*\[\]<>&|~]|(?<!\w)_|_(?!\w)|(?<=\!)(?=\[)|^(?=[#+-])|^(?=\d+[.)])", re.MULTILINE)


def visible(text: str) -> str:
    """The text on one line, with an escape such as `\\x1b` for every character that would do something."""
    return _ACTING.sub(_escape, text)


def in_place(text: str) -> str:
    """The same length as before, so that marks below a line stay where they belong; tabs are left to the caller."""
    return _ACTING.sub(lambda found: "\t" if found.group() == "\t" else "\ufffd", text)


def as_markdown(text: str) -> str:
    """Markdown that reads as the text itself: no image, link, emphasis or HTML comes of it."""
    return _MARKS.sub(lambda found: f"\\{found.group()}", visible(text))


def sentence_markdown(text: str) -> str:
    """A sentence of ours in Markdown: what it quotes in backticks stays code, the rest reads as the text itself."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return as_markdown(text)
    return "".join(as_code(part) if number % 2 else as_markdown(part) for number, part in enumerate(parts))


def unescaped(markdown: str) -> str:
    """The text that `as_markdown` has put escapes into."""
    return re.sub(r"\\([\\`*\[\]<>&|~_!#+-])", r"\1", markdown)


def as_code(text: str) -> str:
    """The text as inline code; a longer fence than any run of backticks in it."""
    shown = visible(text)
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        # Python writes a byte of a file name that is no text as one of these.
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
