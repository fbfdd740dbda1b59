"""GS706: what the rule makes of single events."""

from __future__ import annotations

from gradsight.rules.differentiated_twice import RULE
from tests.rules.single_events import judged


def test_an_intermediate_result_is_a_warning() -> None:
    finding = judged(RULE, "differentiated-twice", name="square", cls="Cube", reason="saved")
    assert finding is not None
    assert (finding.code, finding.severity) == ("GS706", "warning")
    assert "`Cube.backward` uses `square` without its graph" in finding.message


def test_what_torch_refuses_is_an_error() -> None:
    finding = judged(RULE, "differentiated-twice", cls="Cube", reason="once")
    assert finding is not None
    assert finding.severity == "error"
