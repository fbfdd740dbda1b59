"""A program under construction: its lines, its random choices and the variables the next statement may use.

A *variable* is any expression that reads a tensor: a name, `pair[0]`, `self.scale`.
A *group* is a set of variables that may share memory.  *Kept* groups are those an operator has probably saved for
backward.  Both are the author's guesses: they steer how often a program fails, and never decide whether it does.
*Daring* is the probability that a write ignores those guesses.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

Shape = tuple[int, ...]
Choice = TypeVar("Choice")

NAMES = (
    *("a", "b", "c", "y", "z", "h", "out", "feat", "state", "mid", "mix", "score", "acc", "emb", "proj"),
    *(
        "part",
        "gate",
        "hidden",
        "signal",
        "total",
        "delta",
        "energy",
        "value",
        "logits",
        "memory",
        "q",
        "k",
        "v",
    ),
)
LEAF_NAMES = ("x", "w", "u", "weight", "theta", "scale", "bias", "p", "r", "kernel")
DATA_NAMES = ("data", "target", "noise", "mask", "inputs", "ref", "const", "buf", "table", "cache")
FUNCTION_NAMES = ("apply", "block", "update", "encode", "normalise", "mixer", "head", "advance", "tweak")


@dataclass(frozen=True, slots=True)
class Var:
    """A tensor the program can read, and what its author believes of it."""

    text: str
    shape: Shape
    group: int
    grad: bool = True
    leaf: bool = False
    refuses: bool = False
    """torch refuses to write it in place: one of several views, or an expanded tensor."""
    fixed: bool = False
    """Its name must not be bound here: captured by a closure, a slot of a tuple."""

    @property
    def is_name(self) -> bool:
        return self.text.isidentifier()


@dataclass(frozen=True, slots=True)
class Routine:
    """A function or module the program can call."""

    call: str
    takes: tuple[Shape, ...]
    gives: tuple[Shape, ...]
    extra: tuple[str, ...] = ()
    """Keyword arguments that may be added to the call."""


@dataclass
class Scope:
    """What is visible at one place."""

    variables: list[Var] = field(default_factory=list)
    routines: list[Routine] = field(default_factory=list)
    recording: bool = True
    """Grad mode is on here, as far as the author knows."""
    in_function: bool = False
    in_loop: bool = False
    depth: int = 0
    free_rebinding: bool = True
    """A name may be bound to a tensor of another shape."""


class Draft:
    """Lines, scope and dice."""

    def __init__(self, rng: random.Random, daring: float, rows: int, width: int) -> None:
        self.rng = rng
        self.daring = daring
        self.rows = rows
        self.width = width
        self.head: list[str] = []
        self.body: list[str] = []
        self.indent = 0
        self.scope = Scope()
        self.kept: set[int] = set()
        self.menu: list[tuple[Callable[[Draft], bool], float]] = []
        self.backwards = 0
        self.unknown_choices = 0
        self._groups = 0
        self._used: set[str] = set()
        self._target = self.body

    # Dice

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, choices: Sequence[Choice]) -> Choice:
        return self.rng.choice(choices)

    def weighted(self, choices: Sequence[tuple[Choice, float]]) -> Choice:
        return self.rng.choices([choice for choice, _ in choices], [weight for _, weight in choices])[0]

    def dares(self) -> bool:
        return self.chance(self.daring)

    def number(self) -> str:
        return self.pick(("2", "3", "0.5", "1.5", "2.0", "0.1", "10", "-1.5", "4"))

    # Names and groups

    def fresh(self, pool: Sequence[str]) -> str:
        """A name no other part of the program uses."""
        free = [name for name in pool if name not in self._used]
        name = self.pick(free) if free else f"{self.pick(pool)}{len(self._used)}"
        self._used.add(name)
        return name

    def group(self) -> int:
        self._groups += 1
        return self._groups

    # Lines

    def say(self, line: str) -> None:
        self._target.append("    " * self.indent + line if line else "")

    @contextmanager
    def block(self, header: str, **changes: object) -> Iterator[None]:
        """An indented block with a copy of the scope; what it binds is forgotten afterwards."""
        self.say(header)
        outer = self.scope
        self.scope = replace(
            outer, variables=list(outer.variables), routines=list(outer.routines), depth=outer.depth + 1
        )
        for name, value in changes.items():
            setattr(self.scope, name, value)
        self.indent += 1
        before = len(self._target)
        try:
            yield
        finally:
            if len(self._target) == before:
                self.say("pass")
            self.indent -= 1
            self.scope = outer

    @contextmanager
    def definition(self, header: str, *, decorators: Iterable[str] = ()) -> Iterator[None]:
        """A top-level definition, written ahead of the main part, with an empty scope of its own."""
        outer, target, indent = self.scope, self._target, self.indent
        lines: list[str] = []
        self._target, self.indent = lines, 0
        self.scope = Scope(in_function=True, depth=1)
        for decorator in decorators:
            self.say(decorator)
        self.say(header)
        self.indent = 1
        try:
            yield
        finally:
            self.head.extend(["", "", *lines])
            self.scope, self._target, self.indent = outer, target, indent

    # Variables

    def add(self, variable: Var) -> Var:
        self.forget(variable.text)
        self.scope.variables.append(variable)
        return variable

    def forget(self, text: str) -> None:
        self.scope.variables = [known for known in self.scope.variables if known.text != text]

    def find(
        self,
        *,
        shape: Shape | None = None,
        where: Callable[[Var], bool] = lambda _: True,
    ) -> Var | None:
        """A visible variable, later ones more often."""
        fitting = [
            known
            for known in self.scope.variables
            if (shape is None or known.shape == shape) and where(known)
        ]
        if not fitting:
            return None
        return self.rng.choices(fitting, range(2, len(fitting) + 2))[0]

    def keep(self, *variables: Var) -> None:
        """An operator has probably saved these for backward."""
        self.kept.update(variable.group for variable in variables)

    def writable(self, **wanted: object) -> Var | None:
        """A target for an in-place write: a probably harmless one unless the draft dares."""
        shape = wanted.get("shape")
        assert shape is None or isinstance(shape, tuple)
        if self.dares():
            dangerous = self.find(
                shape=shape,
                where=lambda known: (
                    known.grad and not known.leaf and not known.refuses and known.group in self.kept
                ),
            )
            refusing = self.find(shape=shape, where=lambda known: known.refuses and known.grad)
            if refusing is not None and self.chance(0.35):
                return refusing
            if dangerous is not None and self.chance(0.7):
                return dangerous
            return self.find(shape=shape)
        if self.scope.recording:
            return self.find(
                shape=shape,
                where=lambda known: not known.leaf and not known.refuses and known.group not in self.kept,
            )
        return self.find(shape=shape, where=lambda known: not known.refuses and known.group not in self.kept)

    # Statements

    def write_some(self, least: int, most: int) -> None:
        """Some statements from the menu."""
        for _ in range(self.rng.randint(least, most)):
            for _ in range(6):
                if self.weighted(self.menu)(self):
                    break

    def shapes(self) -> tuple[Shape, ...]:
        """The shapes this program likes."""
        return ((self.width,), (self.rows, self.width), (self.width, self.width))
