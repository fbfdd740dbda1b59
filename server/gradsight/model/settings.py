"""What a user may choose about checking.  Each field is documented where the settings schema is generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gradsight.model.finding import Severity

DERIVED = frozenset({"facts"})
"""What follows from the interpreter in use: no user writes it down."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Chosen rules and severities; code prefixes select (`GS1`, `GS101`)."""

    select: tuple[str, ...] = ("GS",)
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = field(default_factory=dict, hash=False)
    hints: bool = False
    exclude: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """Codes that are ignored in the files that a pattern matches."""
    max_megabytes: float = 2.0
    models: str = ""
    """The folder with the user's own models of libraries; none if empty."""
    facts: str = ""
    """The file with the facts that were measured on the user's own torch; the shipped ones if empty."""

    @property
    def most_bytes(self) -> int:
        """The size of the largest file that is checked."""
        return int(self.max_megabytes * 1_000_000)

    def wants(self, code: str) -> bool:
        """Whether the rule with this code is switched on; the longer prefix wins, `ignore` on a tie."""
        chosen = max((len(prefix) for prefix in self.select if code.startswith(prefix)), default=-1)
        refused = max((len(prefix) for prefix in self.ignore if code.startswith(prefix)), default=-1)
        return chosen > refused
