"""Where a cut that a grad mode makes is made: the mode is switched off at one place, and the operator may stand under a condition.

with torch.no_grad():
    if busy:
        y = net(x)      # only here is something cut
"""

from __future__ import annotations

from gradsight.model.events import Step
from gradsight.model.tensors import Cut


def steps_of_mode(cut: Cut) -> list[Step]:
    """The operator, if more has to be so for it to be applied than for the mode to be off."""
    if set(cut.computed_at.guards) <= set(cut.site.guards):
        return []
    return [Step("cut", cut.computed_at, "computed here, with grad mode off")]
