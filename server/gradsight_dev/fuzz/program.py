"""One generated program: its seed, its kind and its text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """A torch program as source text; `seed` and `kind` bring it back."""

    seed: int
    kind: str
    text: str

    @property
    def path(self) -> str:
        """The name under which it is compiled and analysed; no such file exists."""
        return f"<{self.kind} {self.seed}>"
