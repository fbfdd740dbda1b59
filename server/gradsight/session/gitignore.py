"""The patterns of a .gitignore file, matched as git matches them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from gradsight.session import disk


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line: what it matches, whether it lets a path back in, whether it speaks of folders only."""

    regex: re.Pattern[str]
    negated: bool
    folders_only: bool


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The patterns of one file, which speak of the folder that holds it and of everything below."""

    base: str
    patterns: tuple[Pattern, ...]

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """True: ignored, False: let back in, None: nothing said.  The last pattern that matches decides."""
        relative = path[len(self.base) :].lstrip(os.sep).replace(os.sep, "/")
        for pattern in reversed(self.patterns):
            if (is_folder or not pattern.folders_only) and pattern.regex.fullmatch(relative):
                return not pattern.negated
        return None


def read_ignore_file(path: str, base: str) -> IgnoreFile | None:
    """The ignore file at `path`, or None where there is none that can be read."""
    try:
        text = disk.read(path).decode("utf-8", "replace")
    except OSError:
        return None
    return ignore_file(base, text.split("\n"))


def ignore_file(base: str, lines: Iterable[str]) -> IgnoreFile:
    """Patterns that speak of `base` and below."""
    patterns = (parse_pattern(line) for line in lines)
    return IgnoreFile(base, tuple(pattern for pattern in patterns if pattern is not None))


def is_ignored(files: Iterable[IgnoreFile], path: str, is_folder: bool) -> bool:
    """Whether a path is ignored; `files` come from the outermost to the innermost, and the innermost decides."""
    ignored = False
    for file in files:
        verdict = file.verdict(path, is_folder)
        if verdict is not None:
            ignored = verdict
    return ignored


def parse_pattern(line: str) -> Pattern | None:
    """One line of an ignore file, or None for a blank, a comment or nonsense."""
    text = line.rstrip("\r\n")
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    if negated:
        text = text[1:]
    folders_only = text.endswith("/")
    text = text.rstrip("/") if folders_only else text
    if not text:
        return None
    anchored = "/" in text
    try:
        regex = re.compile(("" if anchored else "(?:.*/)?") + _translate(text.removeprefix("/")), re.DOTALL)
    except re.error:
        return None
    return Pattern(regex, negated, folders_only)


def _translate(glob: str) -> str:
    """A glob as a regular expression: `*` and `?` stay inside one folder, `**` crosses folders."""
    pieces = []
    at = 0
    while at < len(glob):
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            pieces.append("(?:.*/)?")
            at += 3
        elif glob[at:] == "**" and (at == 0 or glob[at - 1] == "/"):
            pieces.append(".+")
            at += 2
        elif glob[at] == "*":
            pieces.append("[^/]*")
            at += 1
        elif glob[at] == "?":
            pieces.append("[^/]")
            at += 1
        elif glob[at] == "[":
            end = glob.find("]", at + 2 if glob[at + 1 : at + 2] in ("!", "^", "]") else at + 1)
            if end == -1:
                pieces.append(r"\[")
                at += 1
                continue
            inside = glob[at + 1 : end].replace("\\", "\\\\")
            pieces.append(f"[^{inside[1:]}]" if inside[:1] in ("!", "^") else f"[{inside}]")
            at = end + 1
        elif glob[at] == "\\" and at + 1 < len(glob):
            pieces.append(re.escape(glob[at + 1]))
            at += 2
        else:
            pieces.append(re.escape(glob[at]))
            at += 1
    return "".join(pieces)
