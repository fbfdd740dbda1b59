"""Whether others cleared what an optimizer steps: a question to the time between two steps, and to nothing that was logged before."""

from __future__ import annotations

from typing import Any

from gradsight.detect.partly_cleared import is_cleared

EARLIER = 1000


class Sought(list[Any]):
    """A log that is never gone through as a whole: what is looked for is found by its tick."""

    def __iter__(self) -> Any:
        raise AssertionError("the whole log was read")


class Noted:
    """Anything that somebody asks for its attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def test_only_what_was_done_in_that_time_is_looked_at() -> None:
    own, other = Noted(), Noted()
    parameter: Any = Noted(attributes=None, grad=None)
    log = Sought([Noted(verb="zero", tick=tick, subject=other) for tick in range(EARLIER)])
    log += [
        Noted(verb="zero", tick=EARLIER, subject=own),
        Noted(verb="step", tick=EARLIER + 1, subject=own),
    ]
    path: Any = Noted(log=log, knows_all_parameters=lambda optimizer: True)
    ledger: Any = Noted(was_cleared=lambda *asked: True, was_only_scaled=lambda *asked: False)
    optimizer: Any = own
    assert is_cleared(path, ledger, optimizer, {parameter}, EARLIER, EARLIER + 1)
