"""Spoils program text on purpose: torn, shuffled and doubled code, for a core that must take any text."""

from __future__ import annotations

import random
from collections.abc import Callable

FRAGMENTS = (
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ":",
        ",",
        "=",
        "==",
        ":=",
        "->",
        "*",
        "**",
        "@",
        "...",
        ";",
        "\\",
        "#",
        "'",
        '"""',
    ),
    *("\n", "\t", "    ", "\r", "\f", "\x00", "\ufeff", "\u2028", "é", "𝕏", "名"),
    *(
        "def f(",
        "class A:",
        "lambda:",
        "for x in",
        "while True:",
        "with torch.no_grad():",
        "try:",
        "except:",
        "finally:",
    ),
    *(
        "yield",
        "await",
        "async ",
        "return",
        "raise",
        "global x",
        "nonlocal x",
        "del x",
        "import torch",
        "from . import *",
    ),
    *(
        "x.backward()",
        "x += 1",
        "x[0] = x",
        "x.data",
        "x.grad",
        "super().__init__()",
        "self",
        "*args",
        "**kwargs",
        "match x:",
    ),
    *("1e999", "0x", "1_000", "0b2", "1if 1else 2", 'f"{x!r:{w}}"', "b'\\xff'", "None", "__debug__ = 1"),
)


def mangle(text: str, rng: random.Random) -> str:
    """The text after a few random injuries."""
    for _ in range(rng.randint(1, 4)):
        text = rng.choice(_INJURIES)(text, rng)
    return text


def _cut_out(text: str, rng: random.Random) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + text[start + rng.randint(1, 40) :]


def _cut_off(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text) + 1)]


def _insert(text: str, rng: random.Random) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + rng.choice(FRAGMENTS) + text[start:]


def _swap_lines(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    if len(lines) > 1:
        one, other = rng.sample(range(len(lines)), 2)
        lines[one], lines[other] = lines[other], lines[one]
    return "".join(lines)


def _drop_line(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    if lines:
        del lines[rng.randrange(len(lines))]
    return "".join(lines)


def _double_line(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    if lines:
        chosen = rng.randrange(len(lines))
        lines.insert(chosen, lines[chosen])
    return "".join(lines)


def _shift_line(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    if lines:
        chosen = rng.randrange(len(lines))
        lines[chosen] = rng.choice(("    " + lines[chosen], lines[chosen].lstrip(), "\t" + lines[chosen]))
    return "".join(lines)


def _exchange_names(text: str, rng: random.Random) -> str:
    words = sorted({word for word in text.replace("(", " ").replace(".", " ").split() if word.isidentifier()})
    if len(words) < 2:
        return text
    one, other = rng.sample(words, 2)
    return text.replace(one, other, rng.randint(1, 5))


_INJURIES: tuple[Callable[[str, random.Random], str], ...] = (
    _cut_out,
    _cut_off,
    _insert,
    _insert,
    _swap_lines,
    _drop_line,
    _double_line,
    _shift_line,
    _exchange_names,
    _exchange_names,
)
