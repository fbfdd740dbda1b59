"""Schedules that go on before their optimizer has taken a step: the first learning rate is never used."""

from __future__ import annotations

from collections import Counter

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
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
