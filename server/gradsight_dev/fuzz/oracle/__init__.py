"""The oracle: torch decides what is true of a program."""

from gradsight_dev.fuzz.oracle.judge import judge
from gradsight_dev.fuzz.oracle.truth import (
    BY_NAME,
    CARRIED_CODES,
    FAMILIES,
    Failure,
    Family,
    Truth,
    family_of,
)

__all__ = ["BY_NAME", "CARRIED_CODES", "FAMILIES", "Failure", "Family", "Truth", "family_of", "judge"]
