"""Schedules that go on before their optimizer has taken a step, and those whose optimizer was replaced.

In the first case the first learning rate is never used.  In the second another optimizer moves the same parameters, and its rate
never changes: the schedule goes on for one that steps no more.
"""

from __future__ import annotations

from collections import Counter

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.tensors.training import Action
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer


class EarlySchedulers:
    """Looks at the first step of a schedule when the path is over."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def finish(self) -> None:
        if all(action.verb != "scheduler" for action in self.path.log):
            return
        self.conclude_replaced()
        stepping = {id(run) for a in self.path.log if a.verb == "step" for run, _ in a.loops}
        turns = Counter(id(a.loops[-1][0]) for a in self.path.log if a.verb == "scheduler" and a.loops)
        for index, action in enumerate(self.path.log):
            if action.verb != "scheduler" or action.leaves:
                # `step(epoch)` and `step(metric)` say themselves where the schedule is.
                continue
            inner = action.loops[-1][0] if action.loops else None
            if inner is not None and id(inner) not in stepping:
                if turns[id(inner)] > 1 or not any(id(run) in stepping for run, _ in action.loops):
                    # A loop that steps nothing else winds the schedule forward.
                    continue
            optimizer = action.subject.optimizer
            if not isinstance(optimizer, Optimizer) or optimizer.escaped:
                return
            before = any(a.verb == "step" and a.subject is optimizer for a in self.path.log[:index])
            after = next(
                (a for a in self.path.log[index:] if a.verb == "step" and a.subject is optimizer), None
            )
            if not before and after is not None:
                self.claims.add(
                    "scheduler-first",
                    action.site,
                    [Step("needed", after.site, "the optimizer takes its first step only here")],
                )
            return

    def conclude_replaced(self) -> None:
        """Between two steps of a schedule another optimizer of the same parameters steps, and its own never does again."""
        log = self.path.log
        scheduled = {id(action.subject.optimizer) for action in log if action.verb == "scheduler"}
        since: dict[int, list[Action]] = {}
        for index, action in enumerate(log):
            if action.verb == "step":
                for waiting in since.values():
                    waiting.append(action)
            if action.verb != "scheduler":
                continue
            steps = since.get(id(action.subject), [one for one in log[:index] if one.verb == "step"])
            since[id(action.subject)] = []
            optimizer = action.subject.optimizer
            if not isinstance(optimizer, Optimizer) or optimizer.escaped or self.path.ended_early:
                continue
            own = self.path.ever_held_by(optimizer)
            other = next(
                (
                    one.subject
                    for one in steps
                    if one.subject is not optimizer
                    and isinstance(one.subject, Optimizer)
                    and own & self.path.ever_held_by(one.subject)
                    and id(one.subject) not in scheduled
                ),
                None,
            )
            is_idle = not any(
                one.verb == "step" and one.subject is optimizer for one in [*steps, *log[index:]]
            )
            if other is not None and other.site is not None and is_idle and other.created > optimizer.created:
                made = Step("made", other.site, "the optimizer that steps is made here")
                self.claims.add("scheduler-of-another", action.site, [made])
                return
