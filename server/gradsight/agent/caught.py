"""Errors that torch raised and the program caught: they are part of the run, whoever swallowed them.

An error is *noted* while it is on its way up, with the lines that are running then.  Whether it was caught is known at the
end only: it was, unless it is the error that ended the program or one that this was raised from.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from gradsight.agent.faults import Fault
from gradsight.agent.sites import FrameKey, SourceRange, Stack, line_of, place_of, tree_of

_MOST_NOTED = 64
_LONGEST_MESSAGE = 20_000
_MARK = "_gradsight_noted"
# Context managers that wait for an error: a program that uses them means it to be raised.
_EXPECTING = frozenset({"raises", "assertRaises", "assertRaisesRegex"})


@dataclass(frozen=True)
class Noted:
    """One error of torch on its way up."""

    kind: str
    message: str
    place: SourceRange | None
    fault: Fault | None
    in_backward: bool
    is_expected: bool

    def as_json(self) -> dict[str, Any]:
        """The error as a report shows it."""
        shown: dict[str, Any] = {"type": self.kind, "message": self.message, "location": None}
        if self.place is not None:
            shown.update(self.place.as_json())
        return {
            **shown,
            "kind": self.fault.kind if self.fault is not None else None,
            "in_backward": self.in_backward,
            "expected": self.is_expected,
        }


class CaughtErrors:
    """Every error of torch that somebody saw, and of whom nobody has heard since."""

    def __init__(self) -> None:
        self._noted: list[Noted] = []
        self._seen: set[tuple[str, FrameKey | None]] = set()

    def note(
        self, error: BaseException, stack: Stack, fault: Callable[[], Fault | None], in_backward: bool
    ) -> None:
        """An error goes up through our hands; a loop repeats an error, it does not make a new one."""
        if _mark_of(error) is not None or len(self._noted) >= _MOST_NOTED:
            return
        key = (type(error).__name__, stack[0] if stack else None)
        if key in self._seen:
            _set_mark(error, -1)
            return
        self._seen.add(key)
        _set_mark(error, len(self._noted))
        place = place_of(stack[0]) if stack else None
        waits = any(_is_expected(frame) for frame in stack)
        self._noted.append(
            Noted(type(error).__name__, text_of_error(error), place, fault(), in_backward, waits)
        )

    def errors(self, ending: BaseException | None) -> list[Noted]:
        """Those that did not end the program."""
        ended = {_mark_of(each) for each in related_errors(ending)}
        return [noted for index, noted in enumerate(self._noted) if index not in ended]

    def faults(self, ending: BaseException | None) -> list[Fault]:
        """What is wrong with the program that went on, unless it waited for the error."""
        return [
            replace(fault, evidence={**fault.evidence, "caught": True})
            for noted in self.errors(ending)
            if noted.fault is not None and not noted.is_expected
            for fault in (noted.fault, *noted.fault.others)
        ]

    def notes(self, ending: BaseException | None) -> list[str]:
        """What the reader must know of them."""
        return [
            f"torch raised {noted.kind}{_on_line(noted.place)}, and the program went on: {_first_line(noted.message)}"
            for noted in self.errors(ending)
        ]


def text_of_error(error: BaseException) -> str:
    """The text of an error, also of one that cannot say what it is."""
    try:
        text = str(error)
    except Exception:
        return "its text cannot be shown: `__str__` fails"
    return text if len(text) <= _LONGEST_MESSAGE else text[:_LONGEST_MESSAGE] + "…"


def related_errors(error: BaseException | None) -> Iterator[BaseException]:
    """An error, those it was raised from, and the members of a group, each once."""
    seen: set[int] = set()
    todo = [error]
    while todo:
        current = todo.pop()
        if not isinstance(current, BaseException) or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        todo += [current.__context__, current.__cause__]
        members = getattr(current, "exceptions", ())
        todo += members if isinstance(members, (tuple, list)) else ()


def _mark_of(error: BaseException) -> int | None:
    mark = getattr(error, "__dict__", {}).get(_MARK)
    return mark if isinstance(mark, int) else None


def _set_mark(error: BaseException, number: int) -> None:
    error.__dict__[_MARK] = number


def _is_expected(frame: FrameKey) -> bool:
    """Whether the running line stands in `with pytest.raises(...)` or in one of its like."""
    tree = tree_of(frame.code.co_filename)
    row = line_of(frame)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.With, ast.AsyncWith)) and node.lineno <= row <= (node.end_lineno or 0):
            if any(_expects(item.context_expr) for item in node.items):
                return True
    return False


def _expects(context: ast.expr) -> bool:
    if not isinstance(context, ast.Call):
        return False
    called = context.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in _EXPECTING


def _on_line(place: SourceRange | None) -> str:
    if place is None:
        return ""
    return f" on line {place.row}" + (f" of cell {place.cell}" if place.cell else "")


def _first_line(message: str) -> str:
    line = " ".join(message.split(" Hint:")[0].split())
    return line if len(line) <= 200 else line[:199] + "…"
