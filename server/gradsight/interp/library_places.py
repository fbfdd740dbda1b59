"""Where the user's program stands while the model of a library is executed: findings belong there, never into a model.

*The user's place* of something that a library does is the statement that returned to the library what it works on
(`return loss` of a `training_step`), else the call that entered the library (`accelerator.backward(loss)`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from gradsight.interp.syntax import statement_around
from gradsight.model.events import Step
from gradsight.model.sites import Frame, Site
from gradsight.model.values import ClassValue

DRIVER = "__gradsight_driver__"
"""The method of a model's class that does what the library does with every object of that class."""


class Asking(Protocol):
    """A path on which a library asks the user's functions for values."""

    tick: int
    unanswered: list[tuple[int, Site]]


def place_for_user(node: ast.AST, inside: Frame) -> Site:
    """The user's place of a node in a model; while a model is imported there is none."""
    handed: Site | None = None
    place, frame, name = node, inside, ""
    while frame.unit.library:
        handed = handed or frame.handed
        call = frame.call_site
        if call is None:
            return Site(node, inside)
        if frame.name != DRIVER:
            name = f"{frame.owner.name}.{frame.name}" if frame.owner is not None else frame.name
        place, frame = call.node, call.frame
    site = Site(place, frame) if handed is None else Site(handed.node, handed.frame)
    site.guards, site.loops, site.expected = inside.guards, inside.loops, bool(inside.expecting)
    site.library = name.removesuffix(".__init__").removesuffix(".__call__")
    return site


def note_answer(path: Asking, frame: Frame, callee: Frame, node: ast.AST, is_value: bool) -> None:
    """The user's function has returned to the library: what the library does next, it does with that; or it got nothing."""
    function = callee.function.node
    if is_value:
        frame.handed = Site(callee.exit or function, callee)
    if isinstance(statement_around(node, frame), ast.Assign):
        if is_value:
            # What the library works with from here on is this answer.
            path.unanswered.clear()
        else:
            path.unanswered.append((path.tick, Site(function, callee)))


def steps_for_user(steps: Iterable[Step]) -> tuple[Step, ...]:
    """A trail that names the library where the library acts, and shows no line of its model."""
    return tuple(reworded(step) for step in steps if not is_inside_model(step))


def is_inside_model(step: Step) -> bool:
    unit = getattr(step.place, "unit", None)
    return unit is not None and bool(unit.library)


def reworded(step: Step) -> Step:
    library = getattr(step.place, "library", "")
    if not library:
        return step
    takes = isinstance(getattr(step.place, "node", None), ast.Return)
    what = f"`{library}` uses what is returned here" if takes else f"`{library}`"
    return replace(step, message=f"{what}: {step.message}")


def is_of_library(cls: ClassValue) -> bool:
    """Whether a class stands in a model of a library, which says what counts for gradients and leaves out the rest."""
    return cls.unit is not None and bool(cls.unit.library)
