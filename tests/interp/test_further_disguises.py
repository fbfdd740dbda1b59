"""A write that protocols, keys, callers and replaced methods perform is seen, and its harmless twin is not reported.

The disguises are those of `gradsight_dev.attacks`, which asks torch about each of them; here torch is asked as well.
"""

from __future__ import annotations

import pytest

from gradsight.analysis import analyze
from gradsight.model.source import Source
from gradsight_dev.attack_protocols import MORE
from gradsight_dev.attacks import HEAD, LOUD, VALUES, error_of

UNSEEN = frozenset(("partialmethod", "atleast", "tensor hook writes"))
"""Code that is not followed: nothing is said about what comes after it, and no write is called safe."""
BODIES = {name: body for bodies in MORE.values() for name, body in bodies.items()}


def codes(text: str, *severities: str) -> list[str]:
    return [one.code for one in analyze(Source("attack.py", text)).findings if one.severity in severities]


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", BODIES)
def test_what_torch_refuses_is_reported_and_nothing_else(name: str, kind: str) -> None:
    text = HEAD + BODIES[name].replace("VALUE", VALUES[kind])
    is_refused = bool(error_of(text))
    assert bool(codes(text, *LOUD)) == (is_refused and name not in UNSEEN)
    if is_refused:
        assert "GS190" not in codes(text, "hint")
