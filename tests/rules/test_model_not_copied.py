"""GS514 model-not-copied: what the rule makes of single events."""

from __future__ import annotations

from gradsight.rules.model_not_copied import RULE
from tests.rules.single_events import judged


def test_both_names_are_told() -> None:
    finding = judged(RULE, "model-not-copied", target="best", origin="net", how="name")
    assert finding is not None
    assert finding.message.startswith("`best` is `net` itself")


def test_a_shallow_copy_is_called_by_its_name() -> None:
    finding = judged(RULE, "model-not-copied", target="twin", origin="net", how="copy")
    assert finding is not None
    assert finding.message.startswith("`copy.copy` shares")
