"""Does a repair help?  The program runs before and after it, and the gradients are compared with a reference.

Where a write spoiled what backward needs, the reference is the program as it was with a copy of every saved tensor: its
gradients are those of an out-of-place program.  Elsewhere it is the program as it was, if that came through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradsight.probe.outcome import Observed, Outcome, Raised
from gradsight.probe.request import ProbeRequest
from gradsight.rules import rule_of

TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a repair.  `is_good`: the fault is gone, nothing new came, no gradient is off."""

    is_good: bool
    sentence: str
    torch: str
    differences: tuple[tuple[str, float], ...] = ()


def before(request: ProbeRequest, gradients: str) -> ProbeRequest:
    """The run of the program as it is."""
    return replace(request, gradients_to=gradients)


def reference(request: ProbeRequest, code: str, gradients: str) -> ProbeRequest | None:
    """The run that shows the right gradients; None where the program as it is has to do."""
    if not rule_of(code).spoils_saved:
        return None
    return replace(request, level="deep", clones=True, gradients_to=gradients)


def after(request: ProbeRequest, gradients: str | None) -> ProbeRequest:
    """The run of the fixed program; None when there is nothing to compare it with."""
    return replace(request, gradients_from=gradients)


def judged(code: str, first: Outcome, second: Outcome, is_compared: bool) -> Trial:
    """What the runs before and after a repair of a fault with this code show."""
    torch = _torch_of(second) or _torch_of(first)
    if not isinstance(second, (Observed, Raised)):
        return Trial(False, "the fixed program did not finish", torch)
    known = _codes(first)
    if code not in known:
        return Trial(False, "the program does not show the fault, so there is nothing to compare", torch)
    error = second.report["error"]
    left = _codes(second)
    if code in left and left[code] >= known[code]:
        return Trial(False, "the fault is still there", torch)
    if error is not None:
        return Trial(False, f"the fixed program raises {error['type']}: {_first(error['message'])}", torch)
    new = sorted(set(left) - set(known))
    if new:
        return Trial(False, f"the fault is gone, but the fixed program has {', '.join(new)}", torch)
    gone = "no error" if isinstance(first, Raised) else "the fault is gone"
    if not is_compared:
        return Trial(True, gone, torch)
    rows = second.report.get("comparison") or ()
    is_reference = rule_of(code).spoils_saved
    return _compared(gone, rows, torch, is_reference)


def _compared(gone: str, rows: Sequence[Mapping[str, Any]], torch: str, is_reference: bool) -> Trial:
    """The verdict on the gradients of all backward calls together."""
    worst: dict[str, float] = {}
    gained: dict[str, None] = {}
    lost: dict[str, None] = {}
    for row in rows:
        for name, error in row["errors"].items():
            worst[name] = error if error != error else max(worst.get(name, 0.0), error)
        gained |= dict.fromkeys(row["gained"])
        lost |= dict.fromkeys(row["lost"])
    off = tuple((name, error) for name, error in worst.items() if not error <= TOLERANCE)
    parts = [gone]
    if gained and not is_reference:
        parts.append(f"{_listed(list(gained))} now {'has' if len(gained) == 1 else 'have'} a gradient")
    if lost:
        parts.append(f"{_listed(list(lost))} {'has' if len(lost) == 1 else 'have'} no gradient now")
    if is_reference:
        parts.append(
            "gradients differ from the reference: " + _amounts(off)
            if off
            else "gradients match"
            if worst
            else "there was no gradient to compare"
        )
    elif off:
        parts.append("gradients changed: " + _amounts(off))
    is_good = not lost and not (is_reference and (off or not worst))
    return Trial(is_good, "; ".join(parts), torch, off)


def _amounts(off: Sequence[tuple[str, float]]) -> str:
    shown = [f"{name} by {100 * error:.3g} %" for name, error in off[:3]]
    more = f" and {len(off) - 3} more" if len(off) > 3 else ""
    return ", ".join(shown) + more


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _codes(outcome: Outcome) -> dict[str, int]:
    """The faults of a run, counted by code."""
    counts: dict[str, int] = {}
    report = outcome.report if isinstance(outcome, (Observed, Raised)) else {"faults": ()}
    for fault in report["faults"]:
        counts[str(fault["code"])] = counts.get(str(fault["code"]), 0) + 1
    return counts


def _torch_of(outcome: Outcome) -> str:
    report = getattr(outcome, "report", None) or {}
    return str(report.get("torch") or "").split("+")[0]


def _first(message: str) -> str:
    line = message.split(" Hint:")[0].split("\n")[0]
    return line if len(line) <= 120 else line[:119] + "…"
