"""What is used of a module: some of its names, with all that they can lead to; an edit of anything else concerns nobody.

*Mark*: equal for two texts of a module that are the same to whoever used some of its names.  It covers what is executed whenever the
module is, the statements that bind these names, and, over and over, those that bind a word which stands in one of them.
So it covers more than was executed, and whatever asks a syntax tree what a name stands for finds the answer in it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from hashlib import blake2b

from gradsight.interp.lazy_imports import divide
from gradsight.interp.memory import EVERY_CLASS, binders_of
from gradsight.interp.path_state import parsed_units
from gradsight.model.report import UsedNames
from gradsight.model.sites import Unit
from gradsight.model.source import Source

Uses = dict[str, set[str]]
"""The names that were used, by path of the module; the empty name is the execution of the module itself."""
EVERYTHING = "*"
"""The whole text was looked at."""
WORD = re.compile(r"[^\W\d]\w*")


def use(uses: Uses, path: str, name: str) -> None:
    """Note that a name of a module was used."""
    known = uses.get(path)
    if known is None:
        known = uses[path] = set()
    known.add(name)


def merge(uses: Uses, others: Mapping[str, Iterable[str]]) -> None:
    """Note what others have used."""
    for path, names in others.items():
        uses.setdefault(path, set()).update(names)


def digest(text: str) -> str:
    """Equal for equal texts."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Outline:
    """The statements of one text of a module, and which of them lead to which."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.units = parsed_units(source.path, source.text, source.library)
        # Decorators of whatever origin count as something that is done: more is covered than is executed.
        self.always, _ = divide(self.units, lambda module, level: False)
        self.binders = binders_of(self.units)
        self.binders.pop(EVERY_CLASS, None)
        self.words: dict[Unit, list[Unit]] = {}
        self.marks: dict[frozenset[str], tuple[str, tuple[int, ...]]] = {}
        self.whole = digest(source.text)

    def mark(self, names: Iterable[str]) -> tuple[str, tuple[int, ...]]:
        """The mark for some names, and the lines where the statements begin that it covers."""
        key = frozenset(names)
        if key not in self.marks:
            self.marks[key] = self._mark(key)
        return self.marks[key]

    def _mark(self, names: frozenset[str]) -> tuple[str, tuple[int, ...]]:
        if not self.units or EVERYTHING in names:
            return self.whole, ()
        todo = [*self.always, *(unit for name in names for unit in self.binders.get(name, ()))]
        found = set(todo)
        while todo:
            for unit in self.led_to(todo.pop()):
                if unit not in found:
                    found.add(unit)
                    todo.append(unit)
        covered = [unit for unit in self.units if unit in found]
        return digest("\0".join([unit.text for unit in covered])), tuple([unit.start for unit in covered])

    def led_to(self, unit: Unit) -> list[Unit]:
        """The statements that bind a word of a statement."""
        known = self.words.get(unit)
        if known is None:
            words = {*WORD.findall(unit.text)} & self.binders.keys()
            known = self.words[unit] = [other for word in words for other in self.binders[word]]
        return known


class Outlines:
    """The outlines of modules as their texts are now."""

    def __init__(self) -> None:
        self.known: dict[str, Outline] = {}

    def of(self, source: Source) -> Outline:
        known = self.known.get(source.path)
        if known is None or (known.source is not source and known.source.text != source.text):
            known = self.known[source.path] = Outline(source)
        return known

    def mark_of(self, source: Source, names: frozenset[str], with_lines: bool) -> UsedNames:
        """What was used of a module, with the marks of its text."""
        if not names:
            return UsedNames(source.path, (), "", "")
        outline = self.of(source)
        mark, starts = outline.mark(names)
        return UsedNames(source.path, tuple(sorted(names)), mark, outline.whole, starts if with_lines else ())

    def now(self, used: UsedNames, source: Source | None) -> UsedNames | None:
        """The same use of the module as it is now; None where it is not the same to whoever has used this of it."""
        if source is None or not used.names:
            return used if source is not None else None
        known = self.known.get(used.path)
        whole = known.whole if known is not None and known.source is source else digest(source.text)
        if whole == used.text or EVERYTHING in used.names:
            return used if whole == used.text else None
        mark, starts = self.of(source).mark(used.names)
        if mark != used.mark:
            return None
        return UsedNames(used.path, used.names, mark, whole, starts if used.starts else ())


def moved(line: int, before: UsedNames, after: UsedNames) -> int:
    """Where a line of a statement that was used is now."""
    index = bisect_right(before.starts, line) - 1
    return line + after.starts[index] - before.starts[index] if index >= 0 else line


class Told:
    """What an analysis used of modules, told when somebody asks; `mentioned`: of which of them its report names lines."""

    __slots__ = ("answer", "mentioned", "outlines", "sources", "uses")

    def __init__(
        self,
        outlines: Outlines,
        uses: Mapping[str, frozenset[str]],
        sources: Mapping[str, Source],
        mentioned: Iterable[str],
    ) -> None:
        self.outlines = outlines
        self.uses = uses
        self.sources = sources
        self.mentioned = frozenset(mentioned)
        self.answer: tuple[UsedNames, ...] | None = None

    def __call__(self) -> tuple[UsedNames, ...]:
        if self.answer is None:
            self.answer = tuple(
                self.outlines.mark_of(source, self.uses[path], path in self.mentioned)
                for path, source in sorted(self.sources.items())
            )
        return self.answer
