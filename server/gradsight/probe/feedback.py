"""What torch's complaint about a made-up input says about the input that would fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from gradsight.probe.guesses import SMALL, Guess, field_guess

Guesses = dict[str, Guess]


def revised(guesses: Guesses, message: str) -> Guesses | None:
    """The inputs after a complaint; None when it says nothing about them."""
    for pattern, revise in _LESSONS:
        match = re.search(pattern, message)
        if match is not None:
            better = revise(guesses, match)
            return better if better != guesses else None
    return None


def _last_extent(guesses: Guesses, match: re.Match[str]) -> Guesses:
    """Every tensor whose last extent is the wrong one gets the right one."""
    wrong, right = int(match["wrong"]), int(match["right"])
    changed = _mapped(
        guesses,
        lambda each: (
            replace(each, shape=(*each.shape[:-1], right))
            if each.kind == "tensor" and each.shape[-1:] == (wrong,)
            else each
        ),
    )
    if changed != guesses:
        return changed
    return _first_tensor(guesses, lambda each: replace(each, shape=(*each.shape[:-1], right)))


def _channels(guesses: Guesses, match: re.Match[str]) -> Guesses:
    """Channels are the second extent of a batch."""
    right = int(match["right"])
    return _first_tensor(
        guesses,
        lambda each: (
            replace(each, shape=(each.shape[0], right, *each.shape[2:])) if len(each.shape) > 2 else each
        ),
    )


def _rank(guesses: Guesses, match: re.Match[str]) -> Guesses:
    return _first_tensor(guesses, lambda each: replace(each, shape=_of_rank(each.shape, int(match["rank"]))))


def _unpacked(guesses: Guesses, match: re.Match[str]) -> Guesses:
    """A shape that is taken apart has this rank; of a tensor that is split there was too little."""
    changed = _rank(guesses, match)
    if changed != guesses:
        return changed
    return _first_tensor(guesses, lambda each: replace(each, shape=(*each.shape[:-1], 2 * each.shape[-1])))


def _field(guesses: Guesses, match: re.Match[str]) -> Guesses:
    """A record that lacks a field gets it."""
    name = match["name"]
    return {
        each: replace(value, fields=(*value.fields, (name, field_guess(name, True, False))))
        if value.kind == "record"
        else value
        for each, value in guesses.items()
    }


def _one_more(guesses: Guesses, match: re.Match[str]) -> Guesses:
    return _mapped(
        guesses,
        lambda each: (
            replace(each, shape=_of_rank(each.shape, len(each.shape) + 1))
            if each.kind == "tensor" and len(each.shape) < 5
            else each
        ),
    )


def _one_less(guesses: Guesses, match: re.Match[str]) -> Guesses:
    return _mapped(
        guesses,
        lambda each: (
            replace(each, shape=(each.shape[0],)) if each.kind == "whole" and len(each.shape) > 1 else each
        ),
    )


def _whole(guesses: Guesses, match: re.Match[str]) -> Guesses:
    """The last tensor of the call is an index or a class."""
    names = [name for name, each in guesses.items() if each.kind == "tensor"]
    if not names:
        return guesses
    shape = guesses[names[-1]].shape
    return {**guesses, names[-1]: Guess("whole", shape[:1] if len(names) > 1 else shape[:2])}


def _float(guesses: Guesses, match: re.Match[str]) -> Guesses:
    return _mapped(
        guesses, lambda each: Guess("tensor", each.shape or (2, SMALL)) if each.kind == "whole" else each
    )


def _number(guesses: Guesses, match: re.Match[str]) -> Guesses:
    """Something that is counted with is no tensor."""
    names = [name for name, each in guesses.items() if each.kind == "tensor"]
    return {**guesses, names[-1]: Guess("number", literal=str(SMALL))} if names else guesses


def _same_extents(guesses: Guesses, match: re.Match[str]) -> Guesses:
    """Two tensors that meet: the later one takes the extent of the first, else the first takes the later one's."""
    first = next((name for name, each in guesses.items() if each.kind == "tensor"), "")
    wrong, right = int(match["wrong"]), int(match["right"])
    others = {name: each for name, each in guesses.items() if name != first}
    for old, new in ((right, wrong), (wrong, right)):
        changed = _mapped(others, lambda each, old=old, new=new: _with_extent(each, old, new))  # type: ignore[misc]
        if changed != others:
            return {name: changed.get(name, each) for name, each in guesses.items()}
    return _mapped(guesses, lambda each: _with_extent(each, wrong, right))


def _with_extent(each: Guess, old: int, new: int) -> Guess:
    if each.kind not in ("tensor", "whole"):
        return each
    return replace(each, shape=tuple(new if extent == old else extent for extent in each.shape))


def _mapped(guesses: Guesses, change: Callable[[Guess], Guess]) -> Guesses:
    """Every value after a change, those in records and pairs too."""

    def deep(each: Guess) -> Guess:
        if each.fields:
            return replace(each, fields=tuple((name, deep(field)) for name, field in each.fields))
        return change(each)

    return {name: deep(each) for name, each in guesses.items()}


def _first_tensor(guesses: Guesses, change: Callable[[Guess], Guess]) -> Guesses:
    name = next((name for name, each in guesses.items() if each.kind == "tensor"), None)
    return guesses if name is None else {**guesses, name: change(guesses[name])}


def _of_rank(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    if len(shape) >= rank:
        return shape[:1] + shape[len(shape) - rank + 1 :] if rank > 1 else shape[-1:]
    middle = (3,) if rank == 3 else (SMALL,) * (rank - len(shape))
    return (*shape[:1], *middle[: rank - len(shape)], *shape[1:])


_LESSONS: tuple[tuple[str, Callable[[Guesses, re.Match[str]], Guesses]], ...] = (
    (r"shapes cannot be multiplied \(\d+x(?P<wrong>\d+) and (?P<right>\d+)x\d+\)", _last_extent),
    (r"expected input with shape \[\*, (?P<right>\d+)\], but got input of size\[.*?(?P<wrong>\d+)\]", _last_extent),
    (r"input\.size\(-1\) must be equal to input_size\. Expected (?P<right>\d+), got (?P<wrong>\d+)", _last_extent),
    (r"size mismatch, got input \(\d+\), mat \(\d+x(?P<wrong>\d+)\), vec \((?P<right>\d+)\)", _last_extent),
    (r"to have (?P<right>\d+) channels, but got", _channels),
    (r"running_mean should contain \d+ elements not (?P<right>\d+)", _channels),
    (r"[Ee]xpected (?:\dD \(unbatched\) or )?(?P<rank>\d)D ", _rank),
    (r"(?:not enough|too many) values to unpack \(expected (?P<rank>\d)", _unpacked),
    (r"SimpleNamespace' object has no attribute '(?P<name>\w+)'", _field),
    (r"Dimension out of range|too many indices for tensor|must be at least", _one_more),
    (r"scalar type(?:s:)? ?:?Long|scalar types: Long|expected (?:scalar type )?Long|must be long, |IndexTensor|should be (?:long|int)", _whole),
    (r"multi-target not supported|0D or 1D target tensor expected|batch_size \(\d+\) to match target", _one_less),
    (r"can only be .*floating point|expected .* but found Long|same dtype, but got: |'?Long'?.*not implemented", _float),
    (r"cannot be interpreted as an integer|only integer tensors of a single element|an integer is required|must be tuple of ints|argument of type 'Tensor'", _number),
    (r"size of tensor a \((?P<wrong>\d+)\) must match the size of tensor b \((?P<right>\d+)\)", _same_extents),
)  # fmt: skip
