"""Why two sources differ about an operator: each reason was found by running the operator."""

from __future__ import annotations

import re

# (source, operator, text): regular expressions; the first entry that matches gives the reason.
REASONS: tuple[tuple[str, str, str, str], ...] = ()


def reason_of(source: str, name: str, text: str) -> str:
    """The reason for a difference, or empty when none is known."""
    for wanted, operator, said, reason in REASONS:
        if wanted == source and re.fullmatch(operator, name) and re.search(said, text):
            return reason
    return ""
