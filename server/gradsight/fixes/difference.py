"""The patches that turn one text into another, as small as whole lines and then characters allow."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from gradsight.fixes.tree import Patch
from gradsight.model.fix import line_starts


def difference(old: str, new: str, start: int = 0) -> tuple[Patch, ...]:
    """Lines that are equal stay out; in lines that differ, so does what they begin and end with alike.

    `start`: where the old text begins in the text that is patched.
    """
    old_lines, new_lines = _lines(old), _lines(new)
    first, last = alike(old_lines, new_lines)
    before = old_lines[first : len(old_lines) - last]
    after = new_lines[first : len(new_lines) - last]
    offset = start + sum(map(len, old_lines[:first]))
    starts = [offset]
    for line in before:
        starts.append(starts[-1] + len(line))
    patches: list[Patch] = []
    # A line at another level is the same line.
    same = SequenceMatcher(None, [line.strip() for line in before], [line.strip() for line in after], False)
    for _, old_from, old_to, new_from, new_to in same.get_opcodes():
        if old_to - old_from == new_to - new_from:
            for one, other in zip(range(old_from, old_to), range(new_from, new_to)):
                _add(patches, trimmed(starts[one], before[one], after[other]))
            continue
        gone, come = "".join(before[old_from:old_to]), "".join(after[new_from:new_to])
        _add(patches, trimmed(starts[old_from], gone, come))
    return tuple(patches)


def _add(patches: list[Patch], patch: Patch) -> None:
    """One more patch; with the one before it, where the two meet, it is one."""
    if patches and patches[-1].end == patch.start:
        last = patches.pop()
        patch = Patch(last.start, patch.end, last.text + patch.text)
    if patch.text or patch.start < patch.end:
        patches.append(patch)


def _lines(text: str) -> list[str]:
    starts = [*line_starts(text), len(text)]
    return [text[start:end] for start, end in pairwise(starts)]


def trimmed(start: int, old: str, new: str) -> Patch:
    """The smallest patch that makes one piece of text of another."""
    first, last = alike(old, new)
    return Patch(start + first, start + len(old) - last, new[first : len(new) - last])


def alike(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines, or characters, two texts begin with alike, and how many of the others they end with alike."""
    most = min(len(old), len(new))
    first = next((place for place in range(most) if old[place] != new[place]), most)
    rest = range(most - first)
    return first, next((place for place in rest if old[-1 - place] != new[-1 - place]), len(rest))
