"""Statements that write tensors in place, in every form torch offers, seen or unseen by autograd."""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.compute import filled, fits
from gradsight_dev.fuzz.grammar.draft import Draft, Var
from gradsight_dev.fuzz.grammar.tables import HIDDEN_WRITES, SCALAR_WRITES, WRITES, WriteTemplate

WEIGHED_WRITES = tuple((template, template.weight) for template in WRITES)
WEIGHED_HIDDEN = tuple((template, template.weight) for template in HIDDEN_WRITES)
WEIGHED_SCALAR = tuple((template, template.weight) for template in SCALAR_WRITES)


def write(draft: Draft) -> bool:
    """`y *= 2`."""
    target = draft.writable()
    if target is None:
        return False
    if not target.shape:
        return _say(draft, draft.weighted(WEIGHED_SCALAR), target)
    return _write_with(draft, target, WEIGHED_WRITES)


def hidden_write(draft: Draft) -> bool:
    """`x.data.mul_(2)`: autograd is not told."""
    risky = draft.chance(0.3 + draft.daring)
    target = draft.find(
        where=lambda known: (
            known.grad
            and fits("any", known.shape)
            and not known.refuses
            and (known.group in draft.kept) == risky
        )
    )
    if target is None:
        return False
    return _write_with(draft, target, WEIGHED_HIDDEN)


def guarded_write(draft: Draft) -> bool:
    """A write under no_grad: allowed on leaves, noticed by version counters all the same."""
    target = draft.find(where=lambda known: fits("any", known.shape) and not known.refuses)
    if target is None or (target.group in draft.kept and not draft.dares()):
        return False
    with draft.block(
        draft.pick(("with torch.no_grad():", "with torch.no_grad():", "with torch.set_grad_enabled(False):"))
    ):
        draft.scope.recording = False
        return _write_with(draft, target, WEIGHED_WRITES)


def _write_with(draft: Draft, target: Var, table: tuple[tuple[WriteTemplate, float], ...]) -> bool:
    if not fits("any", target.shape):
        return False
    for _ in range(8):
        template = draft.weighted(table)
        if not fits(template.fits, target.shape):
            continue
        if template.style == "out" and draft.scope.recording and not draft.dares():
            continue
        return _say(draft, template, target)
    return False


def _say(draft: Draft, template: WriteTemplate, target: Var) -> bool:
    partners: list[Var] = []
    text = filled(draft, template.text, target, partners)
    if template.style == "augmented" and not _may_bind(target):
        return False
    draft.say(text)
    grad = target.grad or any(one.grad for one in partners)
    if draft.scope.recording and grad:
        if template.keeps:
            draft.keep(target, *partners)
        _note_new_graph(draft, target)
    return True


def _note_new_graph(draft: Draft, target: Var) -> None:
    """A plain tensor that received graph values by a recorded write is part of the graph from here on."""
    for index, known in enumerate(draft.scope.variables):
        if known.text == target.text and not known.grad:
            draft.scope.variables[index] = Var(
                known.text, known.shape, known.group, True, known.leaf, known.refuses, known.fixed
            )


def _may_bind(target: Var) -> bool:
    """Whether `target += 1` is Python that works: a name of this function, a list slot, an attribute."""
    return not target.fixed and "(" not in target.text
