"""Findings that something is missing: no graph, no gradient, no backward before a step.

That something is there is seen on the path it is seen on; that it is missing must hold on every path to the same place.  A
round of a loop that is not executed, or a branch that nobody was sent through, may be where it comes from.  So such a
finding stands only if no other path had at this place what is missing here, and if every branch was taken on some path
that waits, in a loop left before its end, for what the loop counts.
"""

from __future__ import annotations

from typing import Any

from gradsight.detect.passed_arms import SAYS, VERBS, is_asked_for, is_without, lifting_arms
from gradsight.interp.path_state import Arm
from gradsight.model.events import Event

ABSENCES = frozenset({
    "backward-without-graph", "grad-of-unused", "grad-is-none", "step-without-backward", "parameters-not-optimized",
    "optimizer-never-stepped", "gradients-left-by-step", "model-not-copied", "layer-unused",
})  # fmt: skip
GRANTED_ONLY = frozenset({"parameters-not-optimized", "model-not-copied", "layer-unused"})
"""Absences that no further round of a loop can lift: who holds what is settled before the loop."""
LEFT_UNDONE = frozenset({
    "gradients-never-cleared", "gradients-stepped-again", "eval-left-on", "grad-mode-left-off",
})  # fmt: skip
"""What is wrong because nothing undid it: another condition than those around it may."""
CALLED_SAFE = "inplace-recorded"
"""That nothing saved the old value says little of other ways to the same place."""
ClaimKey = tuple[str, Any]


def claim_of(event: Event) -> ClaimKey | None:
    """The kind and place of an event that says that something is missing; a cut that was seen is no absence.

    It is one if another path feeds the parameters behind it at the same step.

    `granted_at` names the place where another path would have it, if that is not the place of the event.
    """
    if event.kind == "path-cut" and "granted_at" in event.names:
        return event.kind, event.names["granted_at"]
    if event.kind in ABSENCES and event.names.get("cut", "none") in ("none", "leaf"):
        return event.kind, event.names.get("granted_at", event.place.key)  # type: ignore[attr-defined]
    return None


class PathsTogether:
    """What the paths of one entry saw, put together."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.seen: set[Any] = set()
        self.granted: set[ClaimKey] = set()
        self.arms: set[Arm] = set()
        self.doubts: dict[ClaimKey, frozenset[Arm]] = {}
        self.proposed: set[ClaimKey] = set()
        """What is missing on paths that differ in many turns: it is not concluded from them."""
        self.waiting: list[tuple[Any, Event, frozenset[Arm]]] = []
        """Such events, and the arms that may do what is missing, for all that their text says."""
        self.idle: dict[str, set[Arm]] = {verb: set() for verb in VERBS.values()}
        """By what may be missing, the arms that were taken on paths on which nothing did it."""

    def add(self, listener: Any, arms: set[Arm], is_single: bool = True) -> None:
        """One more path was executed."""
        claims: set[ClaimKey | None] = set()
        for event in listener.claims.events:
            claim = claim_of(event)
            claims.add(claim)
            if not is_single and event.kind == CALLED_SAFE and not event.place.guards:
                continue
            key = (event.kind, event.place.key, event.names.get("cut"))
            is_absence = claim is not None or event.kind in LEFT_UNDONE
            if not is_single and is_absence:
                lifting = lifting_arms(event.kind, listener.claims.path.decisions)
                if lifting or event.kind not in SAYS:
                    self.proposed.add(claim or (event.kind, event.place.key))
                    if event.kind in VERBS:
                        self.waiting.append((key, event, lifting))
                    continue
            if event.kind in LEFT_UNDONE and is_asked_for(event.kind, listener.claims.path.decisions):
                continue
            if key not in self.seen:
                self.seen.add(key)
                self.events.append(event)
        self.granted |= listener.claims.granted - claims
        self.arms |= arms
        for verb, idle in self.idle.items():
            if is_without(verb, listener.claims.path):
                idle |= arms
        for claim, pending in listener.claims.doubts.items():
            self.doubts.setdefault(claim, pending)

    def needs_turns(self) -> bool:
        """Whether something is missing on some path, and no path was seen that has it."""
        return not self.proposed <= self.granted or any(
            ((claim := claim_of(event)) is not None and claim not in self.granted)
            or event.kind in LEFT_UNDONE
            for event in self.events
        )

    def conclusions(self) -> list[Event]:
        """The events that stand after all paths."""
        for key, event, lifting in self.waiting:
            if key not in self.seen and lifting <= self.idle[VERBS[event.kind]]:
                self.seen.add(key)
                self.events.append(event)
        return [event for event in self.events if self._stands(claim_of(event))]

    def _stands(self, claim: ClaimKey | None) -> bool:
        if claim is None:
            return True
        return claim not in self.granted and self.doubts.get(claim, frozenset()) <= self.arms
