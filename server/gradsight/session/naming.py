"""The word under the cursor: its place, what it is taken from, and what torch calls it.

Only the line it stands on and the imports of the text are read, so that a text that does not parse has words too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_IMPORT = re.compile(r"[ \t]*import[ \t]+([^#\r\n]+)")
_FROM = re.compile(r"[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+(?:\(([^)]*)\)|([^#(\r\n]+))")
_SYMBOL = re.compile(r"\*\*=?|//=?|<<=?|>>=?|[-+*/%@]=?")
_OPERATORS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floor_divide", "%": "remainder", "**": "pow", "@": "matmul",
    "<<": "bitwise_left_shift", ">>": "bitwise_right_shift",
}  # fmt: skip
_TRIPLE = re.compile(r'"""|\'\'\'')
# Methods that lists, strings and their like have too: without knowing the object nothing is said about them.
_COMMON_METHODS = frozenset(
    name
    for kind in (str, list, dict, set, bytes, int, float, tuple)
    for name in dir(kind)
    if not name.startswith("_")
)


@dataclass(frozen=True, slots=True)
class Word:
    """An identifier on a line.  `receiver` is the dotted name before it, `...` for any other expression, or empty."""

    name: str
    start: int
    end: int
    receiver: str = ""
    is_called: bool = False
    is_keyword: bool = False


def word_at(line: str, column: int) -> Word | None:
    """The identifier that holds or touches a column; None in a string or comment."""
    found = next((each for each in _IDENTIFIER.finditer(line) if each.start() <= column <= each.end()), None)
    if found is None or not is_code(line, found.start()):
        return None
    rest = line[found.end() :].lstrip()
    before = line[: found.start()]
    is_keyword = rest.startswith("=") and not rest.startswith("==") and before.rstrip().endswith(("(", ","))
    return Word(
        found.group(), found.start(), found.end(), _receiver(before), rest.startswith("("), is_keyword
    )


@dataclass(frozen=True, slots=True)
class Symbol:
    """An operator sign between two operands, and the method of a tensor that does the same."""

    method: str
    start: int
    end: int


def symbol_at(line: str, column: int) -> Symbol | None:
    """The operator sign at a column; None where it has no operand on its left (`-x`, `f(*parts)`)."""
    found = next((each for each in _SYMBOL.finditer(line) if each.start() <= column < each.end()), None)
    if found is None or not is_code(line, found.start()):
        return None
    left = line[: found.start()].rstrip()[-1:]
    if not (left.isalnum() or left in tuple("_)]}")) or line.startswith("->", found.start()):
        return None
    sign = found.group()
    method = _OPERATORS[sign.rstrip("=")]
    # `x @= w` makes a new tensor: torch has no in-place form of it.
    return Symbol(method + "_" * (sign.endswith("=") and method != "matmul"), found.start(), found.end())


def is_code(line: str, column: int) -> bool:
    """Whether a column lies outside strings and comments, as far as the line itself tells."""
    quote = ""
    at = 0
    while at < column:
        character = line[at]
        if quote:
            if character == "\\":
                at += 1
            elif line.startswith(quote, at):
                at += len(quote) - 1
                quote = ""
        elif character == "#":
            return False
        elif character in "\"'":
            quote = character * 3 if line.startswith(character * 3, at) else character
            at += len(quote) - 1
        at += 1
    return not quote


def is_inside_string(lines: Sequence[str], index: int) -> bool:
    """Whether a line begins inside a string of several lines."""
    quote = ""
    for line in lines[:index]:
        if '"""' not in line and "'''" not in line:
            continue
        for found in _TRIPLE.finditer(line):
            if not quote:
                quote = found.group() if is_code(line, found.start()) else ""
            elif found.group() == quote:
                quote = ""
    return bool(quote)


def imported_names(text: str) -> dict[str, str]:
    """What each imported name stands for: `F` -> `torch.nn.functional`."""
    names: dict[str, str] = {}
    place = text.find("import")
    while place >= 0:
        start = text.rfind("\n", 0, place) + 1
        found = _IMPORT.match(text, start)
        if found is not None:
            _note_modules(found.group(1), names)
        else:
            found = _FROM.match(text, start)
            if found is not None:
                _note_members(found.group(1), found.group(2) or found.group(3), names)
        place = text.find("import", max(place + 1, found.end() if found is not None else 0))
    return names


def _note_modules(listed: str, names: dict[str, str]) -> None:
    for part in listed.split(","):
        module, _, alias = part.strip().partition(" as ")
        if alias.strip():
            names[alias.strip()] = module.strip()
        elif module.strip():
            first = module.strip().split(".")[0]
            names[first] = first


def _note_members(module: str, listed: str, names: dict[str, str]) -> None:
    for part in re.sub(r"#[^\n]*", "", listed).split(","):
        name, _, alias = part.strip().partition(" as ")
        if name:
            names[(alias or name).strip()] = f"{module}.{name.strip()}"


def torch_name(word: Word, imports: dict[str, str]) -> str | None:
    """What torch calls the word: `torch.exp`, `nn.ReLU`, `Tensor.mul_`; None if it is probably not torch's.

    A method of an unknown object is taken for a tensor's unless plain Python objects have it too.
    """
    if word.is_keyword:
        return None
    if not word.receiver:
        full = imports.get(word.name, "")
        return full if full.startswith("torch.") else None
    root, _, rest = word.receiver.partition(".")
    if root in imports:
        full = imports[root] + (f".{rest}" if rest else "")
        if full == "torch" or full.startswith("torch."):
            return f"{full}.{word.name}"
        return None
    return None if word.name in _COMMON_METHODS else f"Tensor.{word.name}"


def _receiver(before: str) -> str:
    """The dotted name in front of a word, `...` for another expression, empty for nothing."""
    before = before.rstrip()
    if not before.endswith(".") or before.endswith(".."):
        return ""
    before = before[:-1].rstrip()
    chain = re.search(r"(?:[^\W\d]\w*\s*\.\s*)*[^\W\d]\w*$", before)
    if chain is None:
        return "..."
    lead = before[: chain.start()].rstrip()
    return "..." if lead.endswith(".") else re.sub(r"\s", "", chain.group())
