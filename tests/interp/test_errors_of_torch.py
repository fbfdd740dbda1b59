"""Programs after the error tests and the notes of torch: each raises on torch, and a line of its cause is reported before."""

from __future__ import annotations

import contextlib
import io

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source
from tests.interp.more_errors_of_torch import PROGRAMS

# fixme: what vmap refuses of numbers, and data of another type.
NOT_YET_REPORTED = {"vmap_item", "set_data_wrong_type", "optimizer_tensor_instead_of_list"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_torch_raises_is_reported_on_a_line_of_its_cause(name: str) -> None:
    marked, message = PROGRAMS[name]
    lines = marked.splitlines()
    wanted = {number for number, line in enumerate(lines, 1) if line.endswith("  # here")}
    text = "\n".join(line.removesuffix("  # here") for line in lines) + "\n"
    with pytest.raises(Exception, match=message), contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, "program.py", "exec"), {"__name__": "__main__"})
    alarms = [f for f in analyze(Source("program.py", text)).findings if f.severity in ("error", "warning")]
    places = {place for alarm in alarms for place in (alarm.span, *(step.span for step in alarm.related))}
    is_reported = bool(wanted & {place.line for place in places})
    assert is_reported != (name in NOT_YET_REPORTED), [alarm.message for alarm in alarms]
