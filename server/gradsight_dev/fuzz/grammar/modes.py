"""Grad modes: blocks, functions and switches that turn recording off and on."""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.compute import expression, fits
from gradsight_dev.fuzz.grammar.draft import NAMES, Draft, Var

OFF = ("with torch.no_grad():", "with torch.no_grad():", "with torch.set_grad_enabled(False):")
ON = (
    "with torch.enable_grad():",
    "with torch.set_grad_enabled(True):",
    "with torch.set_grad_enabled(mode=True):",
)


def quiet_block(draft: Draft) -> bool:
    """`with torch.no_grad():` around a few statements."""
    if draft.scope.depth >= 3:
        return False
    with draft.block(draft.pick(OFF), recording=False):
        draft.write_some(1, 3)
        if draft.chance(0.25):
            with draft.block(draft.pick(ON), recording=True):
                draft.write_some(1, 2)
    return True


def recording_block(draft: Draft) -> bool:
    """`with torch.enable_grad():`, which changes nothing where recording is on."""
    if draft.scope.depth >= 3:
        return False
    with draft.block(draft.pick(ON), recording=True):
        draft.write_some(1, 2)
    return True


def inference_value(draft: Draft) -> bool:
    """A tensor made in inference mode: it may be used, but not saved for backward nor written later."""
    source = draft.find(where=lambda known: fits("any", known.shape))
    if source is None or not draft.dares():
        return False
    name = draft.fresh(NAMES)
    with draft.block("with torch.inference_mode():", recording=False):
        text, _ = expression(draft, source, keep_shape=True)
        draft.say(f"{name} = {text}")
    draft.add(Var(name, source.shape, draft.group(), grad=False, refuses=True))
    return True


def quiet_value(draft: Draft) -> bool:
    """A value computed without recording and used afterwards as a constant."""
    source = draft.find(where=lambda known: fits("any", known.shape))
    if source is None:
        return False
    name = draft.fresh(NAMES)
    with draft.block(draft.pick(OFF), recording=False):
        text, _ = expression(draft, source, keep_shape=True)
        draft.say(f"{name} = {text}")
    draft.add(Var(name, source.shape, draft.group(), grad=False))
    return True


def switch(draft: Draft) -> bool:
    """`torch.set_grad_enabled(False)` as a call, with or without its counterpart."""
    if draft.scope.depth > 0:
        return False
    draft.say("torch.set_grad_enabled(False)")
    draft.scope.recording = False
    draft.write_some(1, 2)
    if draft.chance(0.9) or not draft.dares():
        draft.say("torch.set_grad_enabled(True)")
        draft.scope.recording = True
    return True


def mode_by_flag(draft: Draft) -> bool:
    """`with torch.set_grad_enabled(flag):` where the flag is a name."""
    if draft.scope.depth > 1:
        return False
    flag = draft.fresh(("train", "track", "learning", "needs_grad"))
    value = draft.chance(0.6)
    draft.say(f"{flag} = {value}")
    with draft.block(f"with torch.set_grad_enabled({flag}):", recording=value):
        draft.write_some(1, 3)
    return True
